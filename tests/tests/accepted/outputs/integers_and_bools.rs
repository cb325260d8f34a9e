// integer and bool outputs are plain values
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<i64>, Tensor<bool>, Vec<Tensor<u8>>) {
        (x * 2.0, x.cast(), x.gt_scalar(0.0), vec![])
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (y, n, mask, none) = Op::apply(&x);
    assert_eq!((n.to_vec(), mask.to_vec(), none.len()), (vec![3], vec![true], 0));
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
