// a list of tensors
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        &xs[0] * &xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    Op::apply(&[x.clone(), w.clone()]).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&w), [5.0]);
}
