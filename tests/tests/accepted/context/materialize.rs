// `set_materialize_grads(false)` with optional gradients
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.set_materialize_grads(false);
        (x * 2.0, x * 3.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: Option<&Tensor<f64>>,
        db: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        assert!(db.is_none());
        da.map(|da| da * 2.0)
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x).0.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
