// a pattern is no name for a tensor
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, [a, b]: [&Tensor<f64>; 2]) -> Tensor<f64> {
        x * a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        (dy * 2.0, vec![])
    }
}

fn main() {}
