// a `String` among the saved values
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = (Tensor<f64>, Option<String>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, Some("x".to_owned())));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, name) = ctx.saved_tensor();
        assert!(name.is_some());
        dy * x
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
