//! Losses as formulas that are reduced in the pass that computes them: Huber and focal loss.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;

/// Huber's loss: squares near 0, straight lines beyond `delta`.
#[py_layer(elementwise, reduce = mean)]
impl Huber {
    fn forward<L: Lane>(x: Real<L>, target: Real<L>, #[default(1.0)] delta: f64) -> Real<L> {
        let error = x - target;
        let far = delta * (error.abs() - 0.5 * delta);
        error.abs().le(delta).select(0.5 * error * error, far)
    }
}

/// Focal loss of logits (Lin et al. 2017): gives easy examples little weight.
#[py_layer(elementwise, reduce = mean)]
impl FocalLoss {
    fn forward<L: Lane>(
        logit: Real<L>,
        #[stop_gradient] positive: Mask<L>,
        #[default(2.0)] gamma: f64,
        #[default(0.25)] alpha: f64,
    ) -> Real<L> {
        // The logit of the right answer; its probability is sigmoid(z).
        let z = positive.select(logit, -logit);
        let weight = positive.select(alpha, 1.0 - alpha);
        weight * (1.0 - z.sigmoid()).powf(gamma) * (-z).softplus()
    }
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from(vec![0.2, -0.5, 4.0]);
    x.set_stop_gradient(false);
    let loss = Huber::with().x(&x).target(&Tensor::from(0.0)).apply();
    loss.backward()?;
    println!("huber   {:.6}", loss.item());
    println!("slopes  {:.6?}", x.grad().map(|grad| grad.to_vec()).unwrap_or_default());

    let logits = Tensor::from(vec![4.0, 0.1, -3.0, 2.0]);
    let positive = Tensor::from(vec![true, true, false, false]);
    logits.set_stop_gradient(false);
    for gamma in [0.0, 2.0] {
        let loss = FocalLoss::with().logit(&logits).positive(&positive).gamma(gamma).apply();
        loss.backward()?;
        println!("focal   gamma {gamma}  {:.6}", loss.item());
        println!("slopes  {:.6?}", logits.grad().map(|grad| grad.to_vec()).unwrap_or_default());
        logits.clear_grad();
    }
    Ok(())
}
