//! Activations as formulas: Gelu with a derived gradient, Swish with a learned slope.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;

/// Gaussian error linear unit, tanh form. Its gradient is derived from the formula.
///
/// Error of the gradient in `f32`, at all numbers: as large as the slope near -5.2, where `1 + tanh` cancels and the
/// slope is less than 1e-5. That is the error of the same derivative computed in `f32`.
#[py_layer(elementwise, check(exhaustive))]
impl Gelu {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        // Beyond 10, tanh is 1; without the limit, the cube and its slope would overflow.
        let z = x.clamp(-10.0, 10.0);
        0.5 * x * (1.0 + (0.797_884_560_8 * (z + 0.044_715 * z * z * z)).tanh())
    }
}

/// `x * sigmoid(beta * x)`, with a hand-written gradient, which saves x, beta and the output.
#[py_layer(elementwise)]
impl Swish {
    fn forward<L: Lane>(x: Real<L>, beta: Real<L>) -> Real<L> {
        x * (beta * x).sigmoid()
    }

    fn backward<L: Lane>(x: Real<L>, beta: Real<L>, y: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        let s = (beta * x).sigmoid();
        (dy * (s + beta * y * (1.0 - s)), dy * y * (1.0 - s) * x)
    }
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from(vec![-2.0, -0.5, 0.0, 0.5, 2.0]);
    x.set_stop_gradient(false);
    let y = Gelu::apply(&x);
    y.sum().backward()?;
    println!("gelu    {:.4?}", y.to_vec());
    println!("slope   {:.4?}", x.grad().map(|grad| grad.to_vec()).unwrap_or_default());

    // The hand-written gradient matches the formula.
    Swish::check_backward()?;

    // Learns the slope for which swish is closest to gelu.
    let (x, target) = (x.detach(), y.detach());
    let beta = Tensor::from(1.0);
    for step in 0..=60 {
        beta.set_stop_gradient(false);
        let loss = (Swish::apply(&x, &beta) - &target).square().mean();
        loss.backward()?;
        if step % 20 == 0 {
            println!("step {step:2}  beta {:.4}  loss {:.6}", beta.item(), loss.item());
        }
        let slope = beta.grad().map_or(0.0, |grad| grad.item());
        beta.clear_grad();
        beta.set_stop_gradient(true);
        beta.fill(beta.item() - 5.0 * slope)?;
    }
    Ok(())
}
