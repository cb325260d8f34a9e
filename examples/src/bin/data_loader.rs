//! Batches in random order, prepared on another thread; a learning rate schedule; a progress bar.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::Tensor;
use autograd_core::data::DataLoader;
use autograd_core::nn::{Gelu, Linear, Sequential};
use autograd_core::optim::schedule::{Cosine, Schedule};
use autograd_core::optim::{Optimizer, RmsProp};
use indicatif::ProgressBar;

const EPOCHS: u64 = 60;

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(1);
    let x = Tensor::<f32>::uniform([512, 1], -3.0, 3.0);
    let loader = DataLoader::new((x.clone(), x.sin()), 32).shuffle(7).in_background();
    let net = Sequential::new().then(Linear::new(1, 32)).then(Gelu).then(Linear::new(32, 1));
    let mut optimizer = Optimizer::new(&net, RmsProp::new(0.0));
    let steps = EPOCHS * loader.len() as u64;
    let schedule = Cosine::new(0.01, 0.0, steps - 10).warm_up(10);
    // Drawn on a terminal only.
    let bar = ProgressBar::new(steps);
    for epoch in 0..EPOCHS {
        for batch in loader.epoch(epoch) {
            let (x, y) = batch?;
            optimizer.set_learning_rate(schedule.at(bar.position()));
            net.forward(&x).mse_loss(&y).backward()?;
            optimizer.step()?;
            optimizer.clear_grad();
            bar.inc(1);
        }
    }
    bar.finish();
    let error = (net.forward(&x) - x.sin()).abs().max().item();
    println!("sin learned with an error of at most 0.1: {}", error < 0.1);
    Ok(())
}
