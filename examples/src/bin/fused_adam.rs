//! A step of Adam (Kingma and Ba 2015) in one pass: three tensors in, three tensors out.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;

/// The parameter, and first and second moment, after a step. `step` counts from 1.
#[py_layer(elementwise)]
impl AdamStep {
    fn forward<L: Lane>(
        parameter: Real<L>,
        m: Real<L>,
        v: Real<L>,
        #[stop_gradient] gradient: Real<L>,
        step: i32,
        #[default(0.1)] rate: f64,
        #[default(0.9)] beta1: f64,
        #[default(0.999)] beta2: f64,
    ) -> (Real<L>, Real<L>, Real<L>) {
        let m = beta1 * m + (1.0 - beta1) * gradient;
        let v = beta2 * v + (1.0 - beta2) * gradient * gradient;
        let m_hat = m / (1.0 - beta1.powi(step));
        let v_hat = v / (1.0 - beta2.powi(step));
        (parameter - rate * m_hat / (v_hat.sqrt() + 1e-8), m, v)
    }
}

fn main() -> autograd_core::Result<()> {
    let target = Tensor::from(vec![1.0, -2.0, 3.0]);
    let mut parameter = Tensor::<f64>::zeros([3]);
    let (mut m, mut v) = (Tensor::zeros([3]), Tensor::zeros([3]));
    for step in 1..=100 {
        parameter.set_stop_gradient(false);
        let loss = (&parameter - &target).square().sum();
        loss.backward()?;
        let gradient = parameter.grad().unwrap_or_else(|| Tensor::zeros([3]));
        if step % 25 == 0 {
            println!("step {step:3}  loss {:.6}", loss.item());
        }
        let before = parameter.detach();
        (parameter, m, v) =
            AdamStep::with().parameter(&before).m(&m).v(&v).gradient(&gradient).step(step).apply();
    }
    println!("parameter {:.3?}", parameter.to_vec());
    Ok(())
}
