//! The first program of Paddle's guide: the same tanh on 32-bit numbers.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl CusTanh {
    type Saved = Tensor;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        let y = x.tanh();
        // The context carries y from forward to backward.
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data = Tensor::<f32>::randn([2, 3]);
    data.set_stop_gradient(false);
    let z = CusTanh::apply(&data);
    z.mean().backward()?;
    println!("{}", data.grad().unwrap());
    Ok(())
}
