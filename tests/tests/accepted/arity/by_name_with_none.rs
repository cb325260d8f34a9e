// `None` by name, and early returns
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let needs = ctx.needs_input_grad();
        if !needs.b {
            return Grads { a: Some(dy * 2.0), b: None };
        }
        Grads { a: None, b: Some(dy * 3.0) }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = Tensor::<f64>::from(vec![4.0]);
    Op::apply(&x, &w).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
