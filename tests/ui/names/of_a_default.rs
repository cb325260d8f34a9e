// Calls by name of an op with a default.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[default(2.0)] by: f64) -> Tensor<f64> {
        x * by
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
CASE
}

//= a defaulted argument given twice
    let _ = Op::with().x(&x).by(1.0).by(2.0).apply();

//= a missing argument of `try_apply`
    let _ = Op::with().by(2.0).try_apply();

//= an argument of another type
    let _ = Op::with().x(&x).by("two").apply();
