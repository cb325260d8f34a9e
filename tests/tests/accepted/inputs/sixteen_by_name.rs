// sixteen gradients by name, and sixteen saved
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    type Saved = (
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
        Tensor<f64>,
    );

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x0: &Tensor<f64>,
        x1: &Tensor<f64>,
        x2: &Tensor<f64>,
        x3: &Tensor<f64>,
        x4: &Tensor<f64>,
        x5: &Tensor<f64>,
        x6: &Tensor<f64>,
        x7: &Tensor<f64>,
        x8: &Tensor<f64>,
        x9: &Tensor<f64>,
        x10: &Tensor<f64>,
        x11: &Tensor<f64>,
        x12: &Tensor<f64>,
        x13: &Tensor<f64>,
        x14: &Tensor<f64>,
        x15: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((
            x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15,
        ));
        x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let saved = ctx.saved_tensor();
        Grads {
            x0: dy * &saved.0,
            x1: dy * &saved.1,
            x2: dy * &saved.2,
            x3: dy * &saved.3,
            x4: dy * &saved.4,
            x5: dy * &saved.5,
            x6: dy * &saved.6,
            x7: dy * &saved.7,
            x8: dy * &saved.8,
            x9: dy * &saved.9,
            x10: dy * &saved.10,
            x11: dy * &saved.11,
            x12: dy * &saved.12,
            x13: dy * &saved.13,
            x14: dy * &saved.14,
            x15: dy * &saved.15,
        }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x)
        .sum()
        .backward()
        .unwrap();
    assert_eq!(gradient(&x), [48.0]);
}
