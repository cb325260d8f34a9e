// misspelt calls are no missing ones
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backwards(x);
        ctx.set_attr(2.0);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * *ctx.attrs()
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
