// functions that take or return other types than arrays and tensors, and values that are not functions: case H25
use autograd_core::static_graph::Program;
use ndarray::{ArrayD, ArrayViewD};

fn takes_a_number(x: f32) -> ArrayD<f32> {
    ArrayD::from_elem(vec![], x)
}

fn returns_a_number(x: ArrayViewD<f32>) -> f32 {
    x.sum()
}

fn main() {
    let program = Program::new();
    let _ = program.py_func(takes_a_number);
    let _ = program.py_func(returns_a_number);
    let _ = program.py_func(7);
}
