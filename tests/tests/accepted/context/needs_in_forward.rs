// `needs_input_grad()` in forward and backward, also of a list
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    let c = Tensor::<f64>::from(vec![1.0]);
    Op::apply(&x, &[&c, &w]).sum().backward().unwrap();
    assert_eq!(w.grad().unwrap().to_vec(), [2.0]);
}
