// `Tensor` by its path, and without an element type
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut autograd_core::ForwardContext<Self>,
        x: &autograd_core::Tensor<f64>,
        y: &Tensor,
    ) -> autograd_core::Tensor<f64> {
        x * y.cast::<f64>()
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (autograd_core::Tensor<f64>, Tensor) {
        (dy * 2.0, dy.cast())
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let y = Tensor::<f32>::from(vec![2.0]);
    y.set_stop_gradient(false);
    Op::apply(&x, &y).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(y.grad().unwrap().to_vec(), [1.0]);
}
