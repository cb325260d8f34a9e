// an optional input, given and not
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        match bias {
            Some(bias) => x + bias,
            None => x * 1.0,
        }
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>) {
        let bias = ctx.needs_input_grad().bias.then(|| dy.clone());
        (dy.clone(), bias)
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    Op::apply(&x, None).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
    Op::apply(&x, Some(&w)).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&w), [1.0]);
}
