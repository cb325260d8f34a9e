//! An input whose `stop_gradient` is true needs no gradient: `None`.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer(allow(none_gradient))]
impl CusTanh {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor, x2: &Tensor) -> Tensor {
        x1 + x2
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor) -> (Tensor, Option<Tensor>) {
        (dy.clone(), None)
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data1 = Tensor::<f32>::randn([2, 3]);
    data1.set_stop_gradient(false);
    let data2 = Tensor::<f32>::randn([2, 3]);
    let z = CusTanh::apply(&data1, &data2);
    let fake_loss = z.mean();
    fake_loss.backward()?;
    println!("{}", data1.grad().unwrap());
    println!("{}", data2.grad().is_none());
    Ok(())
}
