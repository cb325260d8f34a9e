//! Discrete choices with estimated gradients: Gumbel-softmax (E. Jang and others, 2016) and the codebook of a
//! VQ-VAE (A. van den Oord and others, 2017). Their backward is not the derivative, which is 0 or absent, so
//! the ops are marked `surrogate`.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;
use autograd_core::{assert_close, grad};

/// A one-hot choice; backward is that of the softmax at temperature `tau`.
#[py_layer(surrogate, shapes(logits: [b.., n], noise: [b.., n] -> [b.., n]))]
impl<T: Float> GumbelSoftmax<T> {
    type Saved = Tensor<T>;
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        logits: &Tensor<T>,
        #[stop_gradient] noise: &Tensor<T>,
        #[default(1.0)] tau: f64,
    ) -> Tensor<T> {
        let soft = ((logits + noise) / tau).softmax(-1);
        ctx.save_for_backward(&soft);
        ctx.set_attrs(tau);
        soft.argmax(-1).one_hot(soft.dim(-1))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        let (soft, tau) = (ctx.saved_tensor(), *ctx.attrs());
        soft * (dy - (dy * soft).sum_axes_keep(-1)) / tau
    }
}

/// The nearest code of each row, and the loss `|sg(z) - code|² + beta |z - sg(code)|²`, where `sg` stops the
/// gradient. The gradient of the codes that were chosen goes straight through to `z`.
#[py_layer(surrogate, shapes(z: [n, d], codes: [k, d] -> ([n, d], [], _)))]
impl<T: Float> Quantize<T> {
    type Saved = (Tensor<T>, Tensor<T>, Tensor<i64>);
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        z: &Tensor<T>,
        codes: &Tensor<T>,
        #[default(0.25)] beta: f64,
    ) -> (Tensor<T>, Tensor<T>, Tensor<i64>) {
        let index = z.cdist(codes).argmin(-1);
        let nearest = codes.index_select(0, &index);
        let loss = (z - &nearest).square().mean() * (1.0 + beta);
        ctx.save_for_backward((z, codes, &index));
        ctx.set_attrs(beta);
        (nearest, loss, index)
    }

    fn backward(ctx: &BackwardContext<Self>, dnearest: &Tensor<T>, dloss: &Tensor<T>) -> Grads {
        let ((z, codes, index), beta) = (ctx.saved_tensor(), *ctx.attrs());
        let error = (z - codes.index_select(0, index)) * dloss * (2.0 / z.len() as f64);
        let dcodes = Tensor::zeros_like(codes).index_add(0, index, &-&error);
        Grads { z: dnearest + error * beta, codes: dcodes }
    }
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(5);
    let [logits, weight] = [(); 2].map(|()| Tensor::<f64>::randn([4, 3]));
    let noise = -(-Tensor::<f64>::uniform([4, 3], 1e-9, 1.0).ln()).ln();
    logits.set_stop_gradient(false);
    let hard = GumbelSoftmax::apply(&logits, &noise, 0.7);
    let soft = ((&logits + &noise) / 0.7).softmax(-1);
    println!("choices {:?}", hard.argmax(-1).to_vec());
    let ours = grad(&[&(hard * &weight).sum()], &[&logits])?;
    let theirs = grad(&[&(soft * &weight).sum()], &[&logits])?;
    assert_close!(ours[0], theirs[0], rtol = 1e-12, atol = 1e-12);
    println!("the choice has the gradient of the softmax");

    // The same codebook by `detach`, from the formula in the paper.
    let (z, codes) = (Tensor::<f64>::randn([6, 2]), Tensor::<f64>::randn([4, 2]));
    for x in [&z, &codes] {
        x.set_stop_gradient(false);
    }
    let weight = Tensor::<f64>::randn([6, 2]);
    let (q, loss, index) = Quantize::with().z(&z).codes(&codes).apply();
    let ours = grad(&[&((q * &weight).sum() + loss * 3.0)], &[&z, &codes])?;
    let e = codes.index_select(0, &index);
    let straight = &z + (&e - &z).detach();
    let loss = (z.detach() - &e).square().mean() + (&z - e.detach()).square().mean() * 0.25;
    let theirs = grad(&[&((straight * &weight).sum() + loss * 3.0)], &[&z, &codes])?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_close!(ours, theirs, rtol = 1e-12, atol = 1e-12);
    }
    println!("the codebook has the gradients of the paper");

    // Points around four centres are coded by two bits.
    let centres = Tensor::<f64>::from([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]);
    let book = parameter(Tensor::<f64>::randn([4, 2]) * 0.5);
    let model = (Linear::<f64>::new(2, 2), Linear::<f64>::new(2, 2), book);
    println!("{} parameters", model.parameter_count());
    let mut adam = Optimizer::new(&model, Adam::new(0.03));
    let mut last = 0.0;
    for _ in 0..200 {
        let kind = Tensor::<i64>::randint([64], 0, 4);
        let x = centres.index_select(0, &kind) + Tensor::randn([64, 2]) * 0.05;
        let (q, commit, _) = Quantize::with().z(&model.0.forward(&x)).codes(&model.2).apply();
        let error = model.1.forward(&q).mse_loss(&x);
        (&error + commit).backward()?;
        adam.step()?;
        adam.clear_grad();
        last = error.item();
    }
    println!("mean squared error of the decoded points below 0.01: {}", last < 0.01);
    Ok(())
}
