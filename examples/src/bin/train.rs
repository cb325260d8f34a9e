//! Training in a few lines: a net of two layers learns exclusive or.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::{Tensor, nn, optim};

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(1);
    let net = [nn::Linear::new(2, 8), nn::Linear::new(8, 1)];
    let x = Tensor::from([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0_f32, 1.0]]);
    let target = Tensor::from([[0.0], [1.0], [1.0], [0.0_f32]]);
    let predict = || net[1].forward(&net[0].forward(&x).tanh());
    let mut adam = optim::Optimizer::new(&net, optim::Adam::new(0.05));
    for _ in 0..500 {
        predict().mse_loss(&target).backward()?;
        adam.step()?;
        adam.clear_grad();
    }
    println!("{:?}", predict().gt_scalar(0.5).to_vec()); // [false, true, true, false]
    Ok(())
}
