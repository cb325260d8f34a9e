// a gradient is returned by value
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward<'a>(_ctx: &'a BackwardContext<Self>, dy: &'a Tensor<f64>) -> &'a Tensor<f64> {
        dy
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
