// a generic struct without `#[derive(Saved)]` is reported once
use autograd_core::prelude::*;

struct Parts<T: Float> {
    x: Tensor<T>,
}

#[py_layer]
impl<T: Float> Op<T> {
    type Saved = Parts<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward(Parts { x: x.clone() });
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * &ctx.saved_tensor().x
    }
}

fn main() {}
