// a marked input has no gradient among those that backward returns
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    Op::apply(&w, &x).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert!(w.grad().is_none());
}
