// optional gradients of a list, as a `Vec` and as an array
use autograd_core::prelude::*;
use support::{gradient, leaf};

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
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    let c = Tensor::<f64>::from(vec![1.0]);
    Op::apply(&[&x], [&c, &w]).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&w), [3.0]);
}
