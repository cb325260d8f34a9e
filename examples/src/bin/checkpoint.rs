//! A deep model in pieces: backward recomputes each piece, including dropout, instead of saving it.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::checkpoint;
use autograd_core::prelude::*;

static KEPT: AtomicUsize = AtomicUsize::new(0);
static MOST_KEPT: AtomicUsize = AtomicUsize::new(0);

/// Counts the tensors that wait for backward: a value lives as long as a saved tensor.
struct Waiting;

impl Waiting {
    fn new() -> Self {
        let now = KEPT.fetch_add(1, Ordering::Relaxed) + 1;
        MOST_KEPT.fetch_max(now, Ordering::Relaxed);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A tanh whose saved tensors are counted.
#[py_layer]
impl CountedTanh {
    type Saved = Tensor<f64>;
    type Attrs = Waiting;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        ctx.set_attrs(Waiting::new());
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

const PIECES: usize = 8;
const LAYERS: usize = 8;

/// One piece of the model: layers with dropout between them.
fn piece(x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
    (0..LAYERS).fold(x.clone(), |h, _| CountedTanh::apply(&h.matmul(w)).dropout(0.1, true))
}

fn run(cut: bool) -> autograd_core::Result<Vec<f64>> {
    autograd_core::seed(2023);
    let w = Tensor::<f64>::randn([16, 16]) * 0.4;
    w.set_stop_gradient(false);
    let mut h = Tensor::<f64>::randn([4, 16]);
    MOST_KEPT.store(0, Ordering::Relaxed);
    for _ in 0..PIECES {
        let (x, w) = (h.clone(), w.clone());
        h = if cut { checkpoint(move || piece(&x, &w)) } else { piece(&x, &w) };
    }
    let after_forward = KEPT.load(Ordering::Relaxed);
    h.square().mean().backward()?;
    let most = MOST_KEPT.load(Ordering::Relaxed);
    let how = if cut { "in pieces" } else { "as a whole" };
    println!("{how:>10}: {after_forward:2} saved tensors after forward, {most:2} at most");
    Ok(w.grad().expect("w takes part").to_vec())
}

fn main() -> autograd_core::Result<()> {
    let (whole, cut) = (run(false)?, run(true)?);
    let far = whole.iter().zip(&cut).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("the gradients differ by {}", if far < 1e-12 { "nothing" } else { "something" });
    Ok(())
}
