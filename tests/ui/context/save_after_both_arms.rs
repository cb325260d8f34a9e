// Saved in both arms of a `match`, and once more.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        match x.len() {
            0 => ctx.save_for_backward(x),
            _ => ctx.save_for_backward(x),
        }
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
