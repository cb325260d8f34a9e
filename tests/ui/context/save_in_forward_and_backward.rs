// save_for_backward is called in backward
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 3.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(dy);
        dy * ctx.saved_tensor()
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
