// an optional input, given and not
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    Op::apply(&x, None).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0]);
    Op::apply(&x, Some(&w)).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [1.0]);
}
