// `saved_tensor` and `attrs` in `forward`
use autograd_core::prelude::*;

#[py_layer(allow(unread_saved))]
impl Op {
    type Saved = Tensor<f64>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        let again = ctx.saved_tensor();
        ctx.set_attrs(2.0);
        again * ctx.attrs()
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
