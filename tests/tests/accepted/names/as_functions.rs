// `apply` as a function value
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let f: fn(&Tensor<f64>) -> Tensor<f64> = Op::apply;
    let ys: Vec<_> = [x.clone()].iter().map(Op::apply).collect();
    (f(&x) + &ys[0]).sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}
