// `needs_input_grad()` has the inputs by name
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Option<Tensor<f64>> {
        ctx.needs_input_grad().weight.then(|| dy * 2.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
