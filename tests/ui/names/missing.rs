// Calls by name that lack an argument.
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
    let _ = Op::with().x(CASE);
}

//= a missing argument
&x).by(2.0).f(|x| x).apply(

//= a missing closure
&x).scale(&x).by(2.0).apply(
