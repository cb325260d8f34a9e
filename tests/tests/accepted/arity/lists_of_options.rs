// optional gradients of a list, as a `Vec` and as an array
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        xs: &[&Tensor<f64>],
        ys: [&Tensor<f64>; 2],
    ) -> Tensor<f64> {
        xs[0] * ys[1]
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Vec<Option<Tensor<f64>>>, [Option<Tensor<f64>>; 2]) {
        (vec![Some(dy * 2.0)], [None, Some(dy * 3.0)])
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    let c = Tensor::<f64>::from(vec![1.0]);
    Op::apply(&[&x], [&c, &w]).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [3.0]);
}
