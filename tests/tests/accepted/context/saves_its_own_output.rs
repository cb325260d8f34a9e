// an op may save its own output
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.square();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    drop(Op::apply(&x));
    Op::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [9.0]);
}
