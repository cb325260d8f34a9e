// `#[expect]` and `#[allow]` on the block
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
#[expect(unused_variables)]
#[allow(dead_code)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, unused: f64) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn never() {}
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x, 1.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
