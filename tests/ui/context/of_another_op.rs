// the context of another op
use autograd_core::prelude::*;

struct Other;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Other>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Other>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
