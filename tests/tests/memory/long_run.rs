//! A million training steps of a small model with custom ops: memory stays constant, and all nodes
//! of a graph are dropped after its step. Figures are in `docs/costs.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;
use autograd_core::{buffer_pool_bytes, seed};

use crate::measured::{MEMORY, alone};

/// The number of live nodes of custom ops: each has one of these among its attributes.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Counted {
    fn new() -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        MADE.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Saves its own output.
#[py_layer]
impl Tanh {
    type Saved = Tensor;
    type Attrs = Arc<Counted>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        ctx.set_attrs(Arc::new(Counted::new()));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        let _ = ctx.attrs();
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

/// Saves its inputs.
#[py_layer]
impl Affine {
    type Saved = (Tensor, Tensor);
    type Attrs = Arc<Counted>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
    ) -> Tensor {
        ctx.save_for_backward((x, weight));
        ctx.set_attrs(Arc::new(Counted::new()));
        x.matmul(weight) + bias
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Grads {
        let (x, weight) = ctx.saved_tensor();
        Grads {
            x: dy.matmul(&weight.transpose()),
            weight: x.transpose().matmul(dy),
            bias: dy.sum_axes([0]),
        }
    }
}

/// Bytes held by the program, without the buffers in the pool.
fn held() -> usize {
    MEMORY.current_usage() - buffer_pool_bytes()
}

/// Trains for `steps` steps; after a warm-up of a tenth of them, memory may not change by more than
/// `limit` bytes.
fn train(steps: usize, limit: usize) -> f32 {
    seed(7);
    let leaf = |x: Tensor| {
        x.set_stop_gradient(false);
        x
    };
    let parameters = vec![
        leaf(Tensor::randn([4, 16])),
        leaf(Tensor::zeros([16])),
        leaf(Tensor::randn([16, 1])),
        leaf(Tensor::zeros([1])),
    ];
    let mut adam = Optimizer::new(&parameters, Adam::new(1e-3));
    let x = Tensor::<f32>::randn([32, 4]);
    let target = x.sum_axes_keep([1]).sin();
    let (mut least, mut most, mut loss) = (usize::MAX, 0, f32::NAN);
    let start = Instant::now();
    for step in 1..=steps {
        let [w1, b1, w2, b2] = &parameters[..] else { unreachable!("four parameters") };
        let hidden = Tanh::apply(&Affine::apply(&x, w1, b1));
        let error = (Affine::apply(&hidden, w2, b2) - &target).square().mean();
        drop(hidden);
        // Sometimes a graph is dropped without a walk, or retained for a second one.
        if step % 100 != 0 {
            error.backward().unwrap();
            adam.step().unwrap();
            adam.clear_grad();
        }
        loss = error.item();
        drop(error);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0, "a node of step {step} is left");
        if step >= steps / 10 {
            let held = held();
            (least, most) = (least.min(held), most.max(held));
        }
        if step % (steps / 10) == 0 {
            let (bytes, seconds) = (held(), start.elapsed().as_secs_f64());
            let made = MADE.load(Ordering::Relaxed);
            eprintln!("| {step:>9} | {made:>9} | 0 | {bytes:>7} | {loss:.6} | {seconds:>6.1} |");
        }
    }
    assert!(most - least <= limit, "between {least} and {most} bytes are held");
    eprintln!("after the warm-up between {least} and {most} bytes are held");
    loss
}

#[test]
fn ten_thousand_steps() {
    alone!();
    assert!(train(10_000, 64 << 10) < 0.1);
}

/// `cargo test --release -p tests --test memory -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes"]
fn a_million_steps() {
    alone!();
    assert!(train(1_000_000, 1 << 20) < 0.01);
}
