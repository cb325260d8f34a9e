// another number of inputs, or outputs, than the function has
use autograd_core::DType;
use autograd_core::static_graph::Program;
use ndarray::{ArrayD, ArrayViewD};

fn add(x: ArrayViewD<f32>, y: ArrayViewD<f32>) -> ArrayD<f32> {
    &x + &y
}

fn main() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float32).unwrap();
    let out = program.current_block().create_var("out", DType::Float32, [2]).unwrap();
    let _ = program.py_func(add).x([&x]).out([&out]).call();
    let _ = program.py_func(add).x(&x).out(&out).call();
    let _ = program.py_func(add).x([&x, &x]).out([&out, &out]).call();
}
