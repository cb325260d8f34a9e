//! Ops of each form that Python can call.

mod ops;

autograd_python::export!(
    my_ops;
    ops::CusTanh,
    ops::Gate,
    ops::Total,
    ops::MinMax,
    ops::Shift,
    ops::Gelu,
    ops::Scale,
    ops::Positive,
    ops::Panics,
    ops::Noisy,
    ops::Keeps,
    ops::Choice,
    ops::Function,
);
