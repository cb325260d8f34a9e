// malformed inputs, no inputs, and `check` alone
use autograd_core::prelude::*;

#[py_layer(check([2, 3], w = [3]), check(x = [2, 3], , w = [3]), check, check = [2, 3])]
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
