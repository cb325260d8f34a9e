// `needs_input_grad()` in forward and backward, also of a list
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        ws: &[&Tensor<f64>],
    ) -> Tensor<f64> {
        let needs = ctx.needs_input_grad();
        assert!(needs.x);
        assert_eq!(needs.ws, [false, true]);
        x * ws[1]
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let needs = ctx.needs_input_grad();
        let ws = needs.ws.iter().map(|needed| needed.then(|| dy * 2.0)).collect::<Vec<_>>();
        Grads { x: dy * 2.0, ws }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    let c = Tensor::<f64>::from(vec![1.0]);
    Op::apply(&x, &[&c, &w]).sum().backward().unwrap();
    assert_eq!(gradient(&w), [2.0]);
}
