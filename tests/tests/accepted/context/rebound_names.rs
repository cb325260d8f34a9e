// a rebound name is not an input any more
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let x = x * 2.0;
        ctx.mark_non_differentiable(&x);
        let y = &x * 2.0;
        (x, y)
    }

    fn backward(_ctx: &BackwardContext<Self>, _da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        db * 4.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (a, b) = Op::apply(&x);
    assert!(a.stop_gradient());
    b.sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}
