//! A multilayer perceptron of the ops in [`ops`](crate::ops).

use std::path::Path;

use autograd_core::nn::{Module, init};
use autograd_core::safetensors::SafeTensors;
use autograd_core::{Result, Tensor, no_grad};

use crate::data::Digits;
use crate::ops::{Gelu, Linear, SoftmaxCrossEntropy};

/// The names of its parameters are `layers.0.weight`, `layers.0.bias` and so on.
#[derive(Module)]
pub struct Mlp {
    layers: Vec<Affine>,
}

#[derive(Module)]
struct Affine {
    /// `[inputs, outputs]`
    weight: Tensor,
    /// `[outputs]`
    bias: Tensor,
}

impl Affine {
    fn apply(&self, x: &Tensor) -> Tensor {
        Linear::apply(x, &self.weight, &self.bias)
    }
}

/// How well the model classifies some images.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    pub loss: f64,
    pub images: usize,
    /// The number of correctly classified images.
    pub right: usize,
}

impl Mlp {
    /// Layers between these widths, with the random weights of He et al. 2015.
    pub fn new(widths: &[usize]) -> Self {
        let layer = |ends: &[usize]| {
            let deviation = (2.0 / ends[0] as f64).sqrt();
            Affine { weight: init::normal(ends, 0.0, deviation), bias: init::zeros(ends[1]) }
        };
        Self { layers: widths.windows(2).map(layer).collect() }
    }

    /// The widths: `64 -> 128 -> 10`.
    pub fn shape(&self) -> String {
        let ends = self.layers.iter().map(|layer| format!(" -> {}", layer.bias.len()));
        let start = self.layers.first().map_or(0, |layer| layer.weight.shape()[0]);
        format!("{start}{}", ends.collect::<String>())
    }

    /// The scores of the ten digits, `[n, 10]`, for images `[n, 64]`.
    pub fn logits(&self, images: &Tensor) -> Tensor {
        let [hidden @ .., last] = &self.layers[..] else { return images.clone() };
        last.apply(&hidden.iter().fold(images.clone(), |x, layer| Gelu::apply(&layer.apply(&x))))
    }

    /// The mean loss, and the guess for each image.
    pub fn loss(&self, digits: &Digits) -> (Tensor, Tensor<i64>) {
        SoftmaxCrossEntropy::apply(&self.logits(&digits.images), &digits.labels)
    }

    /// Writes the parameters to a file, as a whole or not at all.
    pub fn save(&self, path: &Path, epoch: usize) -> Result<()> {
        let mut file = SafeTensors { tensors: self.state_dict(), ..SafeTensors::new() };
        file.metadata.insert("epoch".into(), epoch.to_string());
        file.save(path)
    }

    /// The score on these images, and the guess for each.
    pub fn score(&self, digits: &Digits) -> (Score, Tensor<i64>) {
        let (loss, guesses) = no_grad().run(|| self.loss(digits));
        let right = guesses.equal(&digits.labels).cast::<i64>().sum().item() as usize;
        (Score { loss: f64::from(loss.item()), images: digits.len(), right }, guesses)
    }
}

impl Score {
    /// The share of correctly classified images, in percent.
    pub fn accuracy(&self) -> f64 {
        100.0 * self.right as f64 / self.images as f64
    }

    pub fn errors(&self) -> usize {
        self.images - self.right
    }
}
