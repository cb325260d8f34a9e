// an array of tensors
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> [Tensor<f64>; 3] {
        [x * 1.0, x * 2.0, x * 3.0]
    }

    fn backward(_ctx: &BackwardContext<Self>, ds: &[Tensor<f64>]) -> Tensor<f64> {
        assert_eq!(ds.len(), 3);
        &ds[0] + &ds[1] * 2.0 + &ds[2] * 3.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let [_, b, c] = Op::apply(&x);
    (b + c).sum().backward().unwrap();
    assert_eq!(gradient(&x), [5.0]);
}
