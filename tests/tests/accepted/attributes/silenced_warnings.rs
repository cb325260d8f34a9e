// warnings silenced by `allow(..)`
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer(allow(unread_saved, none_gradient))]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(a);
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy * 2.0, b: None }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = Tensor::<f64>::from(vec![1.0]);
    Op::apply(&x, &w).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
