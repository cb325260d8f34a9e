//! An op with its own rule for forward mode: the slope of a long computation along one direction,
//! without a backward pass.
#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use std::cell::Cell;

use autograd_core::prelude::*;
use autograd_core::{gradcheck, hvp, jvp, vjp};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// `log(sum(exp(x * scale)))`, without overflow.
#[py_layer]
impl LogSumExp {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, scale: f64) -> Tensor<f64> {
        let scaled = x * scale;
        let largest = scaled.max();
        let y = (scaled - &largest).exp().sum().ln() + largest;
        ctx.save_for_backward((x, &y));
        ctx.set_attrs(scale);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let ((x, y), scale) = (ctx.saved_tensor(), *ctx.attrs());
        dy * (x * scale - y).exp() * scale
    }

    fn jvp(ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        CALLS.set(CALLS.get() + 1);
        let ((_, y), scale) = (ctx.saved_tensor(), *ctx.attrs());
        (dx * (x * scale - y).exp()).sum() * scale
    }
}

fn loss(x: &Tensor<f64>) -> Tensor<f64> {
    LogSumExp::apply(&x.sin(), 3.0) + LogSumExp::apply(&x.square(), 0.5)
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from([0.5, -1.0, 2.0]);
    let direction = Tensor::from([1.0, 0.0, -0.5]);

    let (value, slope) =
        jvp(|t| loss(&t[0]), std::slice::from_ref(&x), std::slice::from_ref(&direction))?;
    println!("the value is {:.6}, its slope {:.6}", value.item(), slope.item());
    println!("jvp was called {} times", CALLS.get());

    // Backward agrees: the gradient times the direction is the slope.
    let (_, grads) = vjp(|t| loss(&t[0]), std::slice::from_ref(&x), &Tensor::from(1.0))?;
    println!("by backward the slope is {:.6}", (&grads[0] * &direction).sum().item());

    // Forward mode over backward: the derivative of the gradient along the direction.
    let gradient = |t: &[Tensor<f64>]| {
        let (_, mut grads) = vjp(|t| loss(&t[0]), t, &Tensor::from(1.0)).expect("a gradient");
        grads.remove(0)
    };
    let (_, change) = jvp(gradient, std::slice::from_ref(&x), std::slice::from_ref(&direction))?;
    println!("the gradient changes by\n{change}");
    let expected = hvp(loss, &x, &direction)?;
    assert!((change - expected).abs().max().item() < 1e-12);

    // Both rules against finite differences, and against each other.
    gradcheck(|t| loss(&t[0]), &[x])?;
    println!("gradcheck passes");
    Ok(())
}
