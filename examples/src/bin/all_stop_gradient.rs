//! If no input wants a gradient, backward does not run.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl CusTanh {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor, x2: &Tensor) -> Tensor {
        x1 + x2
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor) -> (Tensor, Option<Tensor>) {
        unreachable!("no input wants a gradient")
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data1 = Tensor::<f32>::randn([2, 3]);
    let data2 = Tensor::<f32>::randn([2, 3]);
    let z = CusTanh::apply(&data1, &data2);
    let fake_loss = z.mean();
    fake_loss.backward()?;
    println!("{}", data1.grad().is_none());
    Ok(())
}
