// a struct of tensors without `#[derive(Saved)]`
use autograd_core::prelude::*;

struct Parts {
    x: Tensor<f64>,
}

#[py_layer]
impl Op {
    type Saved = Parts;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Parts { x: x.clone() });
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * &ctx.saved_tensor().x
    }
}

fn main() {}
