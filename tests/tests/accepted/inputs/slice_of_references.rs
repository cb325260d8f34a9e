// a list of references
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        xs[0] * xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    Op::apply(&[&x, &w]).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [5.0]);
}
