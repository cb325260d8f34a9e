//! A transformer of one block learns to spell this project's licence, character by character. Three of its
//! parts are ops with their own gradients: rotary positions, the root mean square norm, and the gated unit.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::gradcheck;
use autograd_core::nn::{Embedding, Linear, Module, parameter};
use autograd_core::optim::schedule::{Cosine, Schedule};
use autograd_core::optim::{AdamW, Optimizer};
use autograd_core::prelude::*;

const TEXT: &str = include_str!("../../../LICENSE-MIT");
const CONTEXT: usize = 24;
const WIDTH: usize = 32;
const HEADS: usize = 4;

/// Rotary positions (J. Su and others, 2021): pairs of features are turned by an angle that grows with the
/// position. A turn's gradient is the turn back.
#[py_layer(shapes(x: [b.., n, 2 * h] -> [b.., n, 2 * h]))]
impl<T: Float> Rotary<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        turn(x, 1.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        turn(dy, -1.0)
    }
}

fn turn<T: Float>(x: &Tensor<T>, sign: f64) -> Tensor<T> {
    let (n, half) = (x.dim(-2), x.dim(-1) / 2);
    let rate = (Tensor::<T>::arange(half) * (-9.0 / half as f64)).exp();
    let angle = Tensor::<T>::arange(n).outer(&rate);
    let (sin, cos) = (angle.sin() * sign, angle.cos());
    let (a, b) = (x.narrow(-1, 0, half), x.narrow(-1, half, half));
    Tensor::concat(&[&a * &cos - &b * &sin, a * sin + b * cos], -1)
}

/// `x / rms(x) * gain` over the last axis (B. Zhang and R. Sennrich, 2019).
#[py_layer(once_differentiable, shapes(x: [b.., n], gain: [n] -> [b.., n]))]
impl<T: Float> RmsNorm<T> {
    type Saved = (Tensor<T>, Tensor<T>, Tensor<T>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, gain: &Tensor<T>) -> Tensor<T> {
        let inverse = (x.square().mean_axes_keep(-1) + 1e-6).sqrt().recip();
        ctx.save_for_backward((x, gain, &inverse));
        x * inverse * gain
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (x, gain, inverse) = ctx.saved_tensor();
        let (unit, dunit) = (x * inverse, dy * gain);
        let along = (&dunit * &unit).mean_axes_keep(-1);
        Grads { gain: (dy * &unit).sum_to(gain.shape()), x: (dunit - unit * along) * inverse }
    }
}

/// A gated unit (N. Shazeer, 2020), as a formula: its gradient is derived.
#[py_layer(elementwise)]
impl SwiGlu {
    fn forward(x: Real, gate: Real) -> Real {
        x * gate * gate.sigmoid()
    }
}

#[derive(Module)]
struct Gpt {
    letters: Embedding<f64>,
    gains: [Tensor<f64>; 3],
    attend: [Linear<f64>; 2],
    feed: [Linear<f64>; 2],
    out: Linear<f64>,
}

impl Gpt {
    fn new(letters: usize) -> Self {
        Self {
            letters: Embedding::new(letters, WIDTH),
            gains: [(); 3].map(|()| parameter(Tensor::ones([WIDTH]))),
            attend: [Linear::new(WIDTH, 3 * WIDTH), Linear::new(WIDTH, WIDTH)],
            feed: [Linear::new(WIDTH, 4 * WIDTH), Linear::new(2 * WIDTH, WIDTH)],
            out: Linear::new(WIDTH, letters),
        }
    }

    /// The scores of the next letter at each place of `[batch, n]` letters.
    fn forward(&self, letters: &Tensor<i64>) -> Tensor<f64> {
        let x = self.block(&self.letters.forward(letters));
        self.out.forward(&RmsNorm::apply(&x, &self.gains[2]))
    }

    fn block(&self, x: &Tensor<f64>) -> Tensor<f64> {
        let (batch, n) = (x.dim(0), x.dim(1));
        let all = self.attend[0].forward(&RmsNorm::apply(x, &self.gains[0]));
        let heads = all.reshape([batch, n, 3 * HEADS, WIDTH / HEADS]).swap_axes(1, 2);
        let parts = heads.split(3, 1);
        let [q, k] = [0, 1].map(|i: usize| Rotary::apply(&parts[i]));
        let hidden = Tensor::<bool>::ones([n, n]).triu(1);
        let scores = q.matmul(&k.t()) / ((WIDTH / HEADS) as f64).sqrt();
        let weights = scores.masked_fill(&hidden, f64::NEG_INFINITY).softmax(-1);
        let mixed = weights.matmul(&parts[2]).swap_axes(1, 2).reshape([batch, n, WIDTH]);
        let x = x + self.attend[1].forward(&mixed);
        let both = self.feed[0].forward(&RmsNorm::apply(&x, &self.gains[1])).split(2, -1);
        &x + self.feed[1].forward(&SwiGlu::apply(&both[0], &both[1]))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(11);
    let text: Vec<char> = TEXT.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let mut alphabet = text.clone();
    alphabet.sort_unstable();
    alphabet.dedup();
    let number = |c: &char| alphabet.binary_search(c).expect("it is in the text") as i64;
    let data = Tensor::from(text.iter().map(number).collect::<Vec<_>>());

    let net = Gpt::new(alphabet.len());
    gradcheck(|x| net.block(&x[0]), &[Tensor::randn([1, 3, WIDTH])])?;
    println!("gradcheck passes for the block");
    println!("{} letters of {}, {} parameters", text.len(), alphabet.len(), net.parameter_count());

    let (steps, rate) = (250, Cosine::new(0.02, 0.001, 250).warm_up(20));
    let mut adam = Optimizer::new(&net, AdamW::new(0.01));
    let mut losses = Vec::new();
    for step in 0..steps {
        let starts = Tensor::<i64>::randint([8, 1], 0, (text.len() - CONTEXT) as i64);
        let at = starts + Tensor::<i64>::arange(CONTEXT + 1);
        let letters = data.index_select(0, &at.flatten()).reshape([8, CONTEXT + 1]);
        let scores = net.forward(&letters.narrow(1, 0, CONTEXT));
        let loss = scores
            .reshape([-1, alphabet.len() as isize])
            .cross_entropy(&letters.narrow(1, 1, CONTEXT).flatten());
        loss.backward()?;
        adam.set_learning_rate(rate.at(step));
        adam.step()?;
        adam.clear_grad();
        losses.push((step as f64, loss.item()));
    }
    let last = losses.last().map_or(f64::NAN, |loss| loss.1);
    println!("loss {:.1} at first, below 1 in the end: {}", losses[0].1, last < 1.0);

    let mut letters: Vec<i64> = "The above".chars().map(|c| number(&c)).collect();
    for _ in 0..30 {
        let seen =
            Tensor::from(letters[letters.len().saturating_sub(CONTEXT)..].to_vec()).unsqueeze(0);
        letters.push(net.forward(&seen).select(1, seen.dim(1) - 1).argmax(-1).at(&[0]));
    }
    println!("{}", letters.iter().map(|&i| alphabet[i as usize]).collect::<String>());
    examples::draw_curves("A small GPT", &[("loss", losses)])
}
