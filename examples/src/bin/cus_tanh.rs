//! The first program of Paddle's `PyLayer` page: tanh with a hand-written gradient.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl CusTanh {
    type Saved = Tensor<f64>; // what backward gets; () when left out
    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data = Tensor::<f64>::randn([2, 3]);
    data.set_stop_gradient(false);
    CusTanh::apply(&data).mean().backward()?;
    println!("{}", data.try_grad()?);
    Ok(())
}
