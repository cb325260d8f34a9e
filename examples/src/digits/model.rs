//! A multilayer perceptron of the ops in [`ops`](crate::ops).

use autograd_core::{Tensor, no_grad};

use crate::data::Digits;
use crate::ops::{Gelu, Linear, SoftmaxCrossEntropy};

/// Weights `[inputs, outputs]` and bias `[outputs]` of each layer.
pub struct Mlp {
    layers: Vec<(Tensor, Tensor)>,
}

/// How well the model reads some images.
#[derive(Clone, Copy, Debug)]
pub struct Score {
    pub loss: f64,
    pub images: usize,
    /// How many of them were read right.
    pub right: usize,
}

impl Mlp {
    /// Layers between these widths, with the random weights of He et al. 2015.
    pub fn new(widths: &[usize]) -> Self {
        let layer = |ends: &[usize]| {
            let deviation = (2.0 / ends[0] as f64).sqrt();
            let (w, b) = (Tensor::randn(ends) * deviation, Tensor::zeros(ends[1]));
            w.set_stop_gradient(false);
            b.set_stop_gradient(false);
            (w, b)
        };
        Self { layers: widths.windows(2).map(layer).collect() }
    }

    pub fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.layers.iter().flat_map(|(w, b)| [w, b])
    }

    /// How many numbers are learned.
    pub fn len(&self) -> usize {
        self.parameters().map(Tensor::len).sum()
    }

    /// The widths: `64 -> 128 -> 10`.
    pub fn shape(&self) -> String {
        let ends = self.layers.iter().map(|(w, _)| format!(" -> {}", w.shape()[1]));
        let start = self.layers.first().map_or(0, |(w, _)| w.shape()[0]);
        format!("{start}{}", ends.collect::<String>())
    }

    /// The scores of the ten digits, `[n, 10]`, for images `[n, 64]`.
    pub fn logits(&self, images: &Tensor) -> Tensor {
        let [hidden @ .., (w, b)] = &self.layers[..] else { return images.clone() };
        let x =
            hidden.iter().fold(images.clone(), |x, (w, b)| Gelu::apply(&Linear::apply(&x, w, b)));
        Linear::apply(&x, w, b)
    }

    /// The mean loss, and what each image was taken for.
    pub fn loss(&self, digits: &Digits) -> (Tensor, Tensor<i64>) {
        SoftmaxCrossEntropy::apply(&self.logits(&digits.images), &digits.labels)
    }

    /// How well these images are read now, and what each was taken for.
    pub fn score(&self, digits: &Digits) -> (Score, Tensor<i64>) {
        let (loss, guesses) = no_grad().run(|| self.loss(digits));
        let right = guesses.equal(&digits.labels).cast::<i64>().sum().item() as usize;
        (Score { loss: f64::from(loss.item()), images: digits.len(), right }, guesses)
    }
}

impl Score {
    /// The part that was read right, in percent.
    pub fn accuracy(&self) -> f64 {
        100.0 * self.right as f64 / self.images as f64
    }

    pub fn errors(&self) -> usize {
        self.images - self.right
    }
}
