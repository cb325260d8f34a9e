// `Tensor` by its path, and without an element type
use autograd_core::prelude::*;
use support::{gradient, leaf};

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
    let x = leaf(&[3.0]);
    let y = Tensor::<f32>::from(vec![2.0]);
    y.set_stop_gradient(false);
    Op::apply(&x, &y).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&y), [1.0]);
}
