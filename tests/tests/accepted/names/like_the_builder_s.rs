// parameters named like identifiers of the macro
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        raw: &Tensor<f64>,
        context: f64,
        inputs: f64,
        out: f64,
        visitor: f64,
        saved: f64,
        returned: f64,
        this: f64,
        needs: f64,
        gradient0: f64,
        with: f64,
        forward: f64,
    ) -> Tensor<f64> {
        raw * (context
            + inputs
            + out
            + visitor
            + saved
            + returned
            + this
            + needs
            + gradient0
            + with
            + forward)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { raw: dy * 2.0 }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let y = Op::apply(&x, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
    assert_eq!(y.to_vec(), [33.0]);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
