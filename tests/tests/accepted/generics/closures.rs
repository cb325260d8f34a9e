// a closure as a parameter of the op, not `'static`
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl<F: Fn(&Tensor<f64>) -> Tensor<f64>> Op<F> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: F) -> Tensor<f64> {
        f(x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let text = String::from("xy");
    let y = Op::apply(&x, |x| x * text.len() as f64);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
