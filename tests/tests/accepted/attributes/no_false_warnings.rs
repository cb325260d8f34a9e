// read by a helper, by a closure, `None` on one path only
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(a);
        a * b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        if !ctx.needs_input_grad().b {
            return Grads { a: Self::of(ctx) * dy, b: None };
        }
        Grads { a: Self::of(ctx) * dy, b: Some(dy * 2.0) }
    }

    fn of(ctx: &BackwardContext<Self>) -> Tensor<f64> {
        ctx.saved_tensor().clone()
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x, &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [5.0]);
}
