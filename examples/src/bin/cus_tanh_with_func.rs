//! The other tanh of Paddle's `PyLayer` page: functions as arguments, one of them with a
//! default, passed on to backward as an attribute.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

/// A function of one tensor.
type Func = fn(&Tensor<f64>) -> Tensor<f64>;

#[py_layer]
impl CusTanh {
    type Saved = Tensor<f64>;
    type Attrs = Func;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        func1: Func,
        #[default(Tensor::square)] func2: Func,
    ) -> Tensor<f64> {
        // Values that are not tensors go to backward as attributes.
        ctx.set_attrs(func2);
        let y = func1(x);
        ctx.save_for_backward(&y);
        y
    }

    /// Forward has one output and one input, so backward takes one gradient and returns one.
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        let func2 = ctx.attrs();
        dy * (1.0 - func2(y))
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let data = Tensor::<f64>::randn([2, 3]);
    data.set_stop_gradient(false);
    // Called by name, because `func2` is omitted.
    let z = CusTanh::with().x(&data).func1(Tensor::tanh).apply();
    z.mean().backward()?;
    println!("{}", data.grad().unwrap());
    Ok(())
}
