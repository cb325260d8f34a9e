// `save_for_backward` twice on one path
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x * 2.0;
        ctx.save_for_backward(x);
        if y.len() > 1 {
            ctx.save_for_backward(&y);
        }
        y
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
