// an array of tensors
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let [_, b, c] = Op::apply(&x);
    (b + c).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [5.0]);
}
