//! The tanh of Paddle's guide with an attribute, called by the names of its arguments.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl Tanh {
    type Saved = Tensor<f64>;
    type Attrs = fn(&Tensor<f64>) -> Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x1: &Tensor<f64>,
        func1: impl Fn(&Tensor<f64>) -> Tensor<f64>,
        #[default(Tensor::square)] func2: fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.set_attrs(func2);
        let y1 = func1(x1);
        ctx.save_for_backward(&y1);
        y1
    }

    fn backward(ctx: &BackwardContext<Self>, dy1: &Tensor<f64>) -> Tensor<f64> {
        let y1 = ctx.saved_tensor();
        let func2 = ctx.attrs();
        dy1 * (1.0 - func2(y1))
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let input1 = Tensor::<f32>::randn([2, 3]).cast::<f64>();
    let input2 = input1.detach();
    input1.set_stop_gradient(false);
    input2.set_stop_gradient(false);
    let z = Tanh::with().x1(&input1).func1(Tensor::tanh).apply();

    // Paddle's document ends here. The built-in tanh of the same numbers has the same gradient.
    z.mean().backward()?;
    input2.tanh().mean().backward()?;
    println!("{}", input1.grad().unwrap());
    println!("{}", input2.grad().unwrap());
    Ok(())
}
