// a marked input has no gradient among those that backward returns
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        #[stop_gradient] mask: &Tensor<f64>,
        x: &Tensor<f64>,
    ) -> Tensor<f64> {
        x * mask
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    Op::apply(&w, &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert!(w.grad().is_none());
}
