// a number is saved beside a tensor
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, 3.0));
        x * 3.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, _) = ctx.saved_tensor();
        dy * x
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
