// an unfinished signature: only the compiler's error is reported
use autograd_core::prelude::*;

#[py_layer]
impl Untyped {
    fn forward(ctx: &mut ForwardContext<Self>, x) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl<T: Float> NoComma<T> {
    fn forward(_ctx: &mut ForwardContext<Self> x: &Tensor<T>, by: f64) -> Tensor<T> {
        x * by
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Untyped::apply(&x) * 2.0;
    let _ = Untyped::with().x(&x).apply();
    let _ = NoComma::<f64>::try_apply(&x, 2.0);
    let _ = NoComma::<f64>::with().by(2.0).x(&x).apply();
}
