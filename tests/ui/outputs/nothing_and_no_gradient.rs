// forward returns nothing
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) {
        let _ = x;
    }

    fn backward(_ctx: &BackwardContext<Self>) -> Tensor<f64> {
        Tensor::from(1.0)
    }
}

fn main() {}
