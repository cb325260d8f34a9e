//! An output without a gradient: backward gets zeros, or `None` if its
//! parameter is an `Option`.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl Tanh {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x + x + x, x + x)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad: &Tensor<f64>,
        grad2: &Tensor<f64>,
    ) -> Tensor<f64> {
        assert_eq!(grad2.to_vec(), [0.0]);
        grad.clone()
    }
}

#[py_layer]
impl Tanh2 {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.set_materialize_grads(false);
        (x + x + x, x + x)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad: Option<&Tensor<f64>>,
        grad2: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        assert!(grad2.is_none());
        grad.cloned()
    }
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::<f64>::ones([1]);
    x.set_stop_gradient(false);
    Tanh::apply(&x).0.backward()?;
    println!("{}", x.grad().unwrap());

    let x2 = Tensor::<f64>::ones([1]);
    x2.set_stop_gradient(false);
    Tanh2::apply(&x2).0.backward()?;
    println!("{}", x2.grad().unwrap());
    Ok(())
}
