// saved tensors are read by a call, not from a field
use autograd_core::prelude::*;

#[py_layer]
impl Last {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.sum()
    }

    fn backward(ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Tensor<f64> {
        ctx.saved
    }
}

#[py_layer]
impl Inside {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = &ctx.saved;
        dy * x * 2.0
    }
}

fn main() {}
