//! A gradient in the loss: a critic whose slope is kept near 1, as in WGAN-GP.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::{GradOptions, Tensor, grad_with, no_grad};

struct Critic {
    w1: Tensor<f64>,
    b1: Tensor<f64>,
    w2: Tensor<f64>,
}

impl Critic {
    fn new() -> Self {
        let parameter = |tensor: Tensor<f64>| {
            tensor.set_stop_gradient(false);
            tensor
        };
        Self {
            w1: parameter(Tensor::randn([2, 16])),
            b1: parameter(Tensor::zeros([16])),
            w2: parameter(Tensor::randn([16, 1]) * 0.5),
        }
    }

    /// `[n, 2]` to `[n, 1]`.
    fn score(&self, x: &Tensor<f64>) -> Tensor<f64> {
        (x.matmul(&self.w1) + &self.b1).tanh().matmul(&self.w2)
    }

    /// The norm of the score's gradient at each of the points `[n, 2]`; differentiable.
    fn slopes(&self, x: &Tensor<f64>) -> autograd_core::Result<Tensor<f64>> {
        let x = x.detach();
        x.set_stop_gradient(false);
        let recorded = GradOptions::new().create_graph(true);
        let slopes = grad_with(&[&self.score(&x).sum()], &[&x], recorded)?;
        let slope = slopes.into_iter().next().flatten().expect("the score depends on x");
        Ok((slope.square().sum_axes([1]) + 1e-12).sqrt())
    }

    fn step(&self, rate: f64) -> autograd_core::Result<()> {
        let _off = no_grad();
        for parameter in [&self.w1, &self.b1, &self.w2] {
            if let Some(grad) = parameter.grad() {
                parameter.copy_from(&(parameter - grad * rate))?;
            }
            parameter.clear_grad();
        }
        Ok(())
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(2023);
    let critic = Critic::new();
    let real = Tensor::<f64>::randn([32, 2]) * 0.3 + 1.0;
    let fake = Tensor::<f64>::randn([32, 2]) * 0.3 - 1.0;
    for step in 0..=200 {
        let between = Tensor::<f64>::rand([32, 1]);
        let mixed = &real * &between + &fake * (1.0 - &between);
        let slopes = critic.slopes(&mixed)?;
        let penalty = (&slopes - 1.0).square().mean();
        let gap = critic.score(&fake).mean() - critic.score(&real).mean();
        (&gap + &penalty * 10.0).backward()?;
        critic.step(0.01)?;
        if step % 50 == 0 {
            let (gap, slope) = (-gap.item(), slopes.mean().item());
            println!(
                "step {step:3}: gap {gap:7.4}, slope {slope:.4}, penalty {:.4}",
                penalty.item()
            );
        }
    }
    Ok(())
}
