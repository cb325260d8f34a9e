//! An output without a gradient: backward still has a parameter for it, and gets zeros.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl Tanh {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let a = x + x;
        let b = x + x + x;
        ctx.mark_non_differentiable(&a);
        (a, b)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        grad_a: &Tensor<f64>,
        grad_b: &Tensor<f64>,
    ) -> Tensor<f64> {
        assert_eq!(grad_a.to_vec(), [0.0]);
        assert_eq!(grad_b.to_vec(), [1.0]);
        grad_b.clone()
    }
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::<f64>::ones([1]);
    x.set_stop_gradient(false);
    let (a, b) = Tanh::apply(&x);
    b.sum().backward()?;
    println!("a.stop_gradient {}, b.stop_gradient {}", a.stop_gradient(), b.stop_gradient());
    println!("{}", x.grad().unwrap());
    Ok(())
}
