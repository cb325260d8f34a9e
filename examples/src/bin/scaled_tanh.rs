//! All features at once: two tensor inputs, functions with and without a default, a saved pair,
//! attributes, an output that is not a tensor, and gradients by name.

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use autograd_core::prelude::*;

#[py_layer]
impl ScaledTanh {
    type Saved = (Tensor<f64>, Tensor<f64>); // a tensor, a tuple, an array, Vec, Option, or a #[derive(Saved)] struct with named fields (built with clones: cheap)
    type Attrs = fn(&Tensor<f64>) -> Tensor<f64>; // everything that is not a tensor; () when left out

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
        func1: impl Fn(&Tensor<f64>) -> Tensor<f64>,
        #[default(Tensor::square)] func2: fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> (Tensor<f64>, Vec<usize>) {
        let y = func1(x);
        ctx.set_attrs(func2);
        ctx.save_for_backward((&y, scale));
        (&y * scale, y.shape().to_vec())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (y, scale) = ctx.saved_tensor();
        let func2 = ctx.attrs();
        Grads { x: dy * scale * (1.0 - func2(y)), scale: dy * y }
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let x = Tensor::<f64>::randn([2, 3]);
    let s = Tensor::<f64>::full([2, 3], 0.5);
    x.set_stop_gradient(false);
    s.set_stop_gradient(false);

    // By position, with all arguments.
    let (z, shape) = ScaledTanh::apply(&x, &s, Tensor::tanh, Tensor::square);
    z.sum().backward()?;
    println!("{shape:?}");
    println!("{}", x.grad().unwrap());
    println!("{}", s.grad().unwrap());

    // By name, in any order, without the default.
    x.clear_grad();
    s.clear_grad();
    let (z, _) = ScaledTanh::with().scale(&s).x(&x).func1(Tensor::tanh).apply();
    z.sum().backward()?;
    println!("{}", x.grad().unwrap());
    println!("{}", s.grad().unwrap());
    Ok(())
}
