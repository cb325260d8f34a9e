//! An output that is not a tensor: backward has no parameter for it.
//!
//! The wrong example in Paddle's document, which returns only the shape, does not compile here: see
//! `tests/ui/outputs/shape_only.rs`.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl CusTanh {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor, x2: &Tensor) -> (Tensor, Vec<usize>) {
        let y = x1 + x2;
        let shape = y.shape().to_vec();
        (y, shape)
    }

    /// Forward has two tensor inputs, so there are two gradients.
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor) -> (Tensor, Tensor) {
        (dy.clone(), dy.clone())
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data = Tensor::<f32>::randn([2, 3]);
    data.set_stop_gradient(false);
    let (z, y_shape) = CusTanh::apply(&data, &data);
    z.mean().backward()?;
    println!("{y_shape:?}");
    println!("{}", data.grad().unwrap());
    Ok(())
}
