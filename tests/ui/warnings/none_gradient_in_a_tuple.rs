// a gradient that is always `None`, in a tuple
#![deny(deprecated)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Option<Tensor<f64>>, Option<Tensor<f64>>) {
        (None, Some(dy * 2.0))
    }
}

fn main() {}
