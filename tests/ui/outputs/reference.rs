// an output is returned by value
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward<'a>(_ctx: &mut ForwardContext<Self>, x: &'a Tensor<f64>) -> &'a Tensor<f64> {
        x
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
