// optional gradients in a tuple, inside a `Result`
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<(Option<Tensor<f64>>, Tensor<f64>), std::convert::Infallible> {
        Ok((Some(dy * 2.0), dy * 3.0))
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    Op::apply(&x, &w).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [3.0]);
}
