// saved tensors that `backward` never reads
#![deny(deprecated)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
