// a range without an end, an empty range, and a range after something other than a shape
use autograd_core::prelude::*;

#[py_layer(check(x = [2] in 0.., w = [2] in 1.0), check(x = Tensor::ones([2]) in 0.0..1.0, w = [2]))]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy * w, w: dy * x }
    }
}

fn main() {}
