//! Learning: shuffled mini-batches, and Adam on tensor ops.

use std::f64::consts::PI;
use std::time::{Duration, Instant};

use autograd_core::{Result, Tensor, no_grad};

use crate::data::Digits;
use crate::failure::Failure;
use crate::model::{Mlp, Score};
use crate::progress::Progress;

const BATCH: usize = 32;
/// The greatest step size; it falls to 0 along a half-wave of the cosine.
const RATE: f64 = 3e-3;

/// What learning led to.
#[derive(Default)]
pub struct Outcome {
    /// On the images learned from, after each epoch.
    pub lessons: Vec<Score>,
    /// On those held back.
    pub exam: Vec<Score>,
    /// What each image held back was taken for at the end.
    pub guesses: Vec<i64>,
    /// Spent learning, without the scoring between epochs.
    pub time: Duration,
    /// Images seen in that time.
    pub seen: usize,
}

impl Outcome {
    /// The scores at the end: on the lessons, and on what was held back.
    pub fn last(&self) -> (&Score, &Score) {
        match (&self.lessons[..], &self.exam[..]) {
            ([.., lessons], [.., exam]) => (lessons, exam),
            _ => unreachable!("there is at least one epoch"),
        }
    }
}

/// Goes through the lessons `epochs` times, and scores the model after each.
pub fn learn(
    model: &Mlp,
    lessons: &Digits,
    exam: &Digits,
    epochs: usize,
    progress: &mut Progress,
) -> Result<Outcome, Failure> {
    let mut adam = Adam::new(model);
    let mut outcome = Outcome::default();
    let nudged = lessons.nudged();
    let n = lessons.len();
    let steps = (epochs * n.div_ceil(BATCH)) as f64;
    for epoch in 1..=epochs {
        let start = Instant::now();
        // Each image once, in a new order, each time in one of its five places.
        let rows = Tensor::randperm(n) + Tensor::randint([n], 0, 5) * n as i64;
        for first in (0..n).step_by(BATCH) {
            let batch = nudged.pick(&rows.narrow(0, first, BATCH.min(n - first)));
            let (loss, _) = model.loss(&batch);
            loss.backward()?;
            let done = f64::from(adam.steps) / steps;
            adam.step(model, RATE * 0.5 * (1.0 + (PI * done).cos()))?;
        }
        outcome.time += start.elapsed();
        outcome.seen += lessons.len();
        let (score, guesses) = model.score(exam);
        outcome.lessons.push(model.score(lessons).0);
        outcome.exam.push(score);
        outcome.guesses = guesses.to_vec();
        progress.epoch(epoch, &outcome)?;
    }
    progress.finish();
    Ok(outcome)
}

/// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019).
struct Adam {
    /// The running means of each parameter's gradient and of its square.
    moments: Vec<(Tensor, Tensor)>,
    steps: i32,
}

impl Adam {
    const BETA: (f64, f64) = (0.9, 0.999);
    const DECAY: f64 = 0.02;

    fn new(model: &Mlp) -> Self {
        let zeros = |p: &Tensor| (Tensor::zeros_like(p), Tensor::zeros_like(p));
        Self { moments: model.parameters().map(zeros).collect(), steps: 0 }
    }

    /// One step against the gradients, which are used up.
    fn step(&mut self, model: &Mlp, rate: f64) -> Result<()> {
        let _off = no_grad();
        let (beta1, beta2) = Self::BETA;
        self.steps += 1;
        for (p, (m, v)) in model.parameters().zip(&mut self.moments) {
            let Some(g) = p.grad() else { continue };
            *m = &*m * beta1 + &g * (1.0 - beta1);
            *v = &*v * beta2 + g.square() * (1.0 - beta2);
            let mean = &*m / (1.0 - beta1.powi(self.steps));
            let square = &*v / (1.0 - beta2.powi(self.steps));
            let step = mean / (square.sqrt() + 1e-8) + p * Self::DECAY;
            p.copy_from(&(p - step * rate))?;
            p.clear_grad();
        }
        Ok(())
    }
}
