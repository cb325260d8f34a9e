// saved and marked values are passed in one argument
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, b) = (x * 2.0, x * w);
        ctx.save_for_backward(x, w);
        ctx.mark_non_differentiable(&a, &b);
        (a, b)
    }

    fn backward(ctx: &BackwardContext<Self>, _da: &Tensor<f64>, db: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: db * w, w: db * x }
    }
}

fn main() {}
