// Calls by name.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, scale: &Tensor<f64>, by: f64, f: impl Fn(f64) -> f64) -> Tensor<f64> {
        x * scale * f(by)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 2.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
CASE
}

//= a missing argument
    let _ = Op::with().x(&x).by(2.0).f(|x| x).apply();

//= a missing closure
    let _ = Op::with().x(&x).scale(&x).by(2.0).apply();

//= an argument given twice
    let _ = Op::with().x(&x).x(&x).scale(&x).by(2.0).f(|x| x).apply();

//= an argument of an unknown name
    let _ = Op::with().x(&x).scales(&x);
