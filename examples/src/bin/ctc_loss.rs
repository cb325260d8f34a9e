//! Connectionist temporal classification (A. Graves and others, 2006): a loss for labels without positions.
//! Forward and backward are loops over numbers: dynamic programming over the positions of the labels.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::gradcheck;
use autograd_core::nn::Linear;
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;

const BLANK: usize = 0;

fn log_add(a: f64, b: f64) -> f64 {
    let most = a.max(b);
    if most == f64::NEG_INFINITY { most } else { most + ((a - most).exp() + (b - most).exp()).ln() }
}

/// The labels with blanks between them: `[1, 2]` becomes `[0, 1, 0, 2, 0]`.
fn with_blanks(labels: impl Iterator<Item = usize>) -> Vec<usize> {
    std::iter::once(BLANK).chain(labels.flat_map(|label| [label, BLANK])).collect()
}

/// The logarithms of the probabilities of all paths that are at position `s` at time `t`.
fn prefixes(
    log_prob: impl Fn(usize, usize) -> f64,
    time: usize,
    labels: &[usize],
) -> Vec<Vec<f64>> {
    let mut at = vec![vec![f64::NEG_INFINITY; labels.len()]; time];
    for (s, start) in at[0].iter_mut().enumerate().take(2) {
        *start = log_prob(0, labels[s]);
    }
    for t in 1..time {
        for s in 0..labels.len() {
            let mut sum = at[t - 1][s];
            if s >= 1 {
                sum = log_add(sum, at[t - 1][s - 1]);
            }
            if s >= 2 && labels[s] != BLANK && labels[s] != labels[s - 2] {
                sum = log_add(sum, at[t - 1][s - 2]);
            }
            at[t][s] = sum + log_prob(t, labels[s]);
        }
    }
    at
}

fn total(last: &[f64]) -> f64 {
    last.iter().rev().take(2).copied().fold(f64::NEG_INFINITY, log_add)
}

/// The loss of each sequence of the batch. `lengths` has how many of a row's `targets` are used.
#[py_layer(once_differentiable, shapes(log_probs: [t, b, classes], targets: [b, _] -> [b]))]
impl<T: Float> CtcLoss<T> {
    type Saved = (Tensor<T>, Tensor<i64>);
    type Attrs = Vec<usize>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        log_probs: &Tensor<T>,
        #[stop_gradient] targets: &Tensor<i64>,
        lengths: &[usize],
    ) -> Tensor<T> {
        ctx.save_for_backward((log_probs, targets));
        ctx.set_attrs(lengths.to_vec());
        let (time, numbers, rows) = (log_probs.dim(0), log_probs.view(), targets.view());
        let losses = lengths.iter().enumerate().map(|(b, &length)| {
            let labels = with_blanks((0..length).map(|s| rows[[b, s]] as usize));
            let at = prefixes(|t, c| numbers[[t, b, c]].into_f64(), time, &labels);
            T::from_f64(-total(&at[time - 1]))
        });
        Tensor::from(losses.collect::<Vec<T>>())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> autograd_core::Result<Tensor<T>> {
        let ((log_probs, targets), lengths) = (ctx.saved_tensor(), ctx.attrs());
        let (time, classes) = (log_probs.dim(0), log_probs.dim(2));
        let (numbers, rows) = (log_probs.view(), targets.view());
        let mut grad = vec![0.0; log_probs.len()];
        for (b, (&length, dy)) in lengths.iter().zip(dy.to_vec()).enumerate() {
            let labels = with_blanks((0..length).map(|s| rows[[b, s]] as usize));
            let reversed: Vec<usize> = labels.iter().rev().copied().collect();
            let log_prob = |t: usize, c: usize| numbers[[t, b, c]].into_f64();
            let before = prefixes(log_prob, time, &labels);
            let after = prefixes(|t, c| log_prob(time - 1 - t, c), time, &reversed);
            let all = total(&before[time - 1]);
            for t in 0..time {
                for (s, &class) in labels.iter().enumerate() {
                    // Both have the factor of this time and label.
                    let both = before[t][s] + after[time - 1 - t][labels.len() - 1 - s];
                    let share = (both - log_prob(t, class) - all).exp();
                    grad[(t * lengths.len() + b) * classes + class] -= share * dy.into_f64();
                }
            }
        }
        Tensor::from_vec(log_probs.shape(), grad.into_iter().map(T::from_f64).collect())
    }
}

/// The loss by its definition: the sum over all paths that spell the labels.
fn by_all_paths(log_probs: &Tensor<f64>, b: usize, labels: &[usize]) -> f64 {
    let (time, classes) = (log_probs.dim(0), log_probs.dim(2));
    let mut sum = f64::NEG_INFINITY;
    for code in 0..classes.pow(time as u32) {
        let path: Vec<usize> = (0..time).map(|t| code / classes.pow(t as u32) % classes).collect();
        let mut spelt = path.clone();
        spelt.dedup();
        spelt.retain(|&class| class != BLANK);
        if spelt == labels {
            sum =
                log_add(sum, path.iter().enumerate().map(|(t, &c)| log_probs.at(&[t, b, c])).sum());
        }
    }
    -sum
}

fn main() -> autograd_core::Result<()> {
    autograd_core::seed(3);
    let logits = Tensor::<f64>::randn([5, 2, 3]);
    let (targets, lengths) = (Tensor::from([[1_i64, 1], [2, 0]]), [2, 1]);
    let log_probs = logits.log_softmax(-1);
    let loss = CtcLoss::apply(&log_probs, &targets, &lengths);
    for (b, labels) in [[1, 1].as_slice(), &[2]].into_iter().enumerate() {
        let expected = by_all_paths(&log_probs, b, labels);
        assert!((loss.at(&[b]) - expected).abs() < 1e-12);
        println!("sequence {b}: {:.6}, by all paths {expected:.6}", loss.at(&[b]));
    }
    gradcheck(|x| CtcLoss::apply(&x[0].log_softmax(-1), &targets, &lengths), &[logits])?;
    println!("gradcheck passes");

    // Nine noisy frames show three labels, at places that the net is not given.
    let net = [Linear::<f64>::new(6, 16), Linear::new(16, 4)];
    let mut adam = Optimizer::new(&net, Adam::new(0.03));
    let (mut first, mut last) = (None, 0.0);
    for _ in 0..60 {
        let labels = Tensor::<i64>::randint([8, 3], 1, 4);
        let frames = labels.repeat_interleave(3, 1) * Tensor::from([1_i64, 1, 0]).repeat(&[3]);
        let x = frames.t().one_hot::<f64>(6);
        let x = &x + Tensor::randn_like(&x) * 0.1;
        let scores = net[1].forward(&net[0].forward(&x).tanh());
        let loss = CtcLoss::apply(&scores.log_softmax(-1), &labels, &[3; 8]).mean();
        loss.backward()?;
        adam.step()?;
        adam.clear_grad();
        last = loss.item();
        first.get_or_insert(last);
    }
    println!("loss {:.1} -> {last:.1}", first.unwrap_or_default());
    Ok(())
}
