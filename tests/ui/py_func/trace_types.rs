// a closure that takes a tensor by value cannot be traced, and two inputs are given as a list
use autograd_core::prelude::*;
use autograd_core::DType;
use autograd_core::static_graph::Program;

fn main() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let _ = program.trace(|x: Tensor<f64>| x.exp()).x(&x).call();
    let _ = program.trace(|x: &Tensor<f64>, y: &Tensor<f64>| x + y).x(&x).call();
}
