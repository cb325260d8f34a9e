//! Training: shuffled mini-batches, and Adam with decoupled weight decay.

use std::f64::consts::PI;
use std::time::{Duration, Instant};

use autograd_core::Tensor;
use autograd_core::optim::{AdamW, Optimizer};

use crate::args::Args;
use crate::data::Digits;
use crate::failure::Failure;
use crate::model::{Mlp, Score};
use crate::progress::Progress;

const BATCH: usize = 32;
/// The greatest step size; it falls to 0 along half a period of the cosine.
const RATE: f64 = 3e-3;
const WEIGHT_DECAY: f64 = 0.02;

/// The results of the training.
#[derive(Default)]
pub struct Outcome {
    /// Scores on the training images, after each epoch.
    pub lessons: Vec<Score>,
    /// Scores on the held-out images.
    pub exam: Vec<Score>,
    /// The guess for each held-out image at the end.
    pub guesses: Vec<i64>,
    /// The time of training, without the scoring between epochs.
    pub time: Duration,
    /// The number of images seen in that time.
    pub seen: usize,
}

impl Outcome {
    /// The final scores: on the training images, and on the held-out ones.
    pub fn last(&self) -> (&Score, &Score) {
        match (&self.lessons[..], &self.exam[..]) {
            ([.., lessons], [.., exam]) => (lessons, exam),
            _ => unreachable!("there is at least one epoch"),
        }
    }
}

/// Trains for `args.epochs` epochs; after each it scores the model and saves it.
pub fn learn(
    model: &Mlp,
    lessons: &Digits,
    exam: &Digits,
    args: &Args,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let mut adam = Optimizer::new(model, AdamW::new(RATE).weight_decay(WEIGHT_DECAY));
    let mut outcome = Outcome::default();
    let nudged = lessons.nudged();
    let n = lessons.len();
    let steps = (args.epochs * n.div_ceil(BATCH)) as f64;
    let mut done = 0.0;
    for epoch in 1..=args.epochs {
        let start = Instant::now();
        // Each image once, in a new order, in one of its five positions.
        let rows = Tensor::randperm(n) + Tensor::randint([n], 0, 5) * n as i64;
        for first in (0..n).step_by(BATCH) {
            let batch = nudged.pick(&rows.narrow(0, first, BATCH.min(n - first)));
            let (loss, _) = model.loss(&batch);
            loss.backward()?;
            adam.set_learning_rate(RATE * 0.5 * (1.0 + (PI * done / steps).cos()));
            adam.step()?;
            adam.clear_grad();
            done += 1.0;
        }
        outcome.time += start.elapsed();
        outcome.seen += lessons.len();
        let (score, guesses) = model.score(exam);
        outcome.lessons.push(model.score(lessons).0);
        outcome.exam.push(score);
        outcome.guesses = guesses.to_vec();
        if let Some(path) = &args.save {
            model.save(path, epoch)?;
        }
        progress.epoch(epoch, &outcome)?;
    }
    progress.finish();
    Ok(outcome)
}
