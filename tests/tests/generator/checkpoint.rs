//! Checkpoints: the same gradients with fewer saved tensors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, GradOptions, HookResult, checkpoint, grad, grad_with, hessian,
    is_grad_enabled,
};
use support::{gradient, leaf};

use crate::turn;

/// Runs a closure directly, or as a checkpoint.
fn maybe(cut: bool, f: impl Fn() -> Tensor<f64> + Send + Sync + 'static) -> Tensor<f64> {
    if cut { checkpoint(f) } else { f() }
}

/// Two layers, each a piece, which capture leaves and results of other ops.
fn model(cut: bool, x: &Tensor<f64>, w: &Tensor<f64>, v: &Tensor<f64>) -> Tensor<f64> {
    let (x1, w1) = (x.clone(), w.clone());
    let h = maybe(cut, move || (&x1 * &w1).tanh() + &w1);
    let (h2, w2, v2) = (h.clone(), w.clone(), v.clone());
    let y = maybe(cut, move || (&h2 * &v2).exp() * &w2 + &h2);
    (&y * &h).sum()
}

#[test]
fn gradients_are_the_same() {
    let run = |cut| {
        let (x, w, v) = (leaf(&[0.5, -1.0]), leaf(&[2.0, 0.25]), leaf(&[-0.5, 0.75]));
        let loss = model(cut, &x, &w, &v);
        loss.backward().unwrap();
        assert!(matches!(loss.backward(), Err(Error::GraphFreed { .. })));
        (loss.item(), gradient(&x), gradient(&w), gradient(&v))
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn grad_goes_to_what_a_piece_has_captured() {
    let run = |cut| {
        let (x, w, v) = (leaf(&[0.5]), leaf(&[2.0]), leaf(&[-0.5]));
        let h = &x * 3.0;
        let y = model(cut, &h, &w, &v);
        let grads = grad(&[&y], &[&h, &v]).unwrap();
        assert!(x.grad().is_none() && w.grad().is_none());
        grads.iter().map(Tensor::item).collect::<Vec<_>>()
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn higher_orders() {
    let run = |cut| {
        let (x, w, v) = (leaf(&[0.5, 0.1]), leaf(&[2.0, 1.0]), leaf(&[-0.5, 1.5]));
        let create = || GradOptions::new().create_graph(true);
        let y = model(cut, &x, &w, &v);
        let dx = grad_with(&[&y], &[&x], create()).unwrap().remove(0).unwrap();
        let d2x = grad_with(&[&dx.sum()], &[&x], create()).unwrap().remove(0).unwrap();
        d2x.sum().backward().unwrap();
        let h = hessian(|x| model(cut, x, &w, &v), &x).unwrap();
        [dx.to_vec(), d2x.to_vec(), gradient(&x), gradient(&w), h.to_vec()].concat()
    };
    // Sums of more than two gradients may have another order.
    for (cut, whole) in run(true).iter().zip(run(false)) {
        assert!((cut - whole).abs() <= 1e-14 * whole.abs(), "{cut} {whole}");
    }
}

#[test]
fn retained_graphs_are_run_again() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let x = leaf(&[3.0]);
    let inside = x.clone();
    let y = checkpoint(move || {
        RUNS.fetch_add(1, Ordering::Relaxed);
        inside.square()
    });
    for runs in 2..5 {
        y.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
        assert_eq!(RUNS.load(Ordering::Relaxed), runs);
    }
    assert_eq!(gradient(&x), [18.0]);
}

#[test]
fn pieces_inside_pieces() {
    fn nest(depth: usize, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        if depth == 0 {
            return (x * w).sin();
        }
        let (x, w) = (x.clone(), w.clone());
        checkpoint(move || nest(depth - 1, &(&x + 0.5), &w) * &w)
    }
    let (x, w) = (leaf(&[0.3]), leaf(&[1.5]));
    nest(3, &x, &w).backward().unwrap();
    let (at, w3): (f64, f64) = ((0.3 + 1.5) * 1.5, 1.5 * 1.5 * 1.5);
    assert!((gradient(&x)[0] - at.cos() * 1.5 * w3).abs() < 1e-12);
    let by_w = at.cos() * 1.8 * w3 + at.sin() * 3.0 * 1.5 * 1.5;
    assert!((gradient(&w)[0] - by_w).abs() < 1e-12);
}

#[test]
fn random_numbers_are_the_same_in_both_runs() {
    let _turn = turn();
    let run = |cut| {
        autograd_core::seed(7);
        let x = leaf(&[1.0; 64]);
        let inside = x.clone();
        let h = maybe(cut, move || (&inside * 2.0).dropout(0.5, true));
        let between: Tensor<f64> = Tensor::randn([3]);
        h.sum().backward().unwrap();
        // Backward does not consume numbers that are drawn later.
        let after: Tensor<f64> = Tensor::randn([3]);
        assert_eq!(gradient(&x), h.to_vec());
        (h.to_vec(), between.to_vec(), after.to_vec())
    };
    let (cut, whole) = (run(true), run(false));
    assert!(whole.0.contains(&0.0) && whole.0.contains(&4.0));
    assert_eq!(cut, whole);
}

#[test]
fn backwards_of_several_threads_do_not_take_numbers_from_each_other() {
    let _turn = turn();
    autograd_core::seed(9);
    let pieces: Vec<_> = (0..4)
        .map(|_| {
            let x = leaf(&[1.0; 512]);
            let inside = x.clone();
            let y = checkpoint(move || {
                let once = inside.dropout(0.5, true);
                once.dropout(0.3, true)
            });
            (x, y)
        })
        .collect();
    std::thread::scope(|scope| {
        for (x, y) in &pieces {
            scope.spawn(|| {
                for _ in 0..50 {
                    let retain = BackwardOptions::new().retain_graph(true);
                    x.clear_grad();
                    y.sum().backward_options(retain).unwrap();
                    assert_eq!(gradient(x), y.to_vec());
                }
            });
        }
    });
    let next: Tensor<f64> = Tensor::rand([1]);
    autograd_core::seed(9);
    // Two dropouts of 512 numbers, four times; each number is one draw.
    let all: Tensor<f64> = Tensor::rand([2 * 512 * 4 + 1]);
    assert_eq!(all.to_vec().last(), Some(&next.item()));
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Lives as long as its node.
struct Counted;

impl Counted {
    fn new() -> Self {
        MOST.fetch_max(LIVE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A sine whose nodes are counted.
#[py_layer]
impl Sine {
    type Saved = Tensor<f64>;
    type Attrs = Counted;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(Counted::new());
        x.sin()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().cos()
    }
}

#[test]
fn one_piece_is_alive_at_a_time() {
    let run = |cut: bool| {
        MOST.store(0, Ordering::SeqCst);
        let x = leaf(&[0.5]);
        let mut h = &x * 1.0;
        for _ in 0..10 {
            let start = h.clone();
            h = maybe(cut, move || (0..10).fold(start.clone(), |h, _| Sine::apply(&h)));
        }
        let kept = LIVE.load(Ordering::SeqCst);
        h.backward().unwrap();
        drop(h);
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
        (kept, MOST.load(Ordering::SeqCst), gradient(&x))
    };
    let (kept, most, whole) = run(false);
    assert_eq!((kept, most), (100, 100));
    let (kept, most, cut) = run(true);
    assert_eq!((kept, most), (0, 10));
    assert_eq!(cut, whole);
}

#[test]
fn where_nothing_is_recorded_it_is_a_call() {
    let x = leaf(&[2.0]);
    let inside = x.clone();
    let y = no_grad().run(move || checkpoint(move || inside.square()));
    assert!(y.stop_gradient());
    assert!(checkpoint(|| Tensor::<f32>::ones([2])).stop_gradient());
    // The captured tensor itself.
    let inside = x.clone();
    checkpoint(move || inside.clone()).backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}

#[test]
fn a_leaf_that_changed_in_between() {
    let x = leaf(&[2.0]);
    let inside = x.clone();
    let y = checkpoint(move || inside.square());
    no_grad().run(|| x.fill(5.0)).unwrap();
    let error = y.backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "checkpoint", .. }), "{error}");
    assert!(x.grad().is_none());
}

#[test]
fn a_closure_that_does_something_else_the_second_time() {
    let (x, w) = (leaf(&[2.0]), leaf(&[3.0]));
    let again = AtomicBool::new(false);
    let (x1, w1) = (x.clone(), w.clone());
    let y =
        checkpoint(move || if again.swap(true, Ordering::SeqCst) { &x1 * &w1 } else { &x1 * 3.0 });
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("must do the same in both runs"), "{error}");
    let again = AtomicBool::new(false);
    let x1 = x.clone();
    let y =
        checkpoint(move || if again.swap(true, Ordering::SeqCst) { x1.sum() } else { x1.square() });
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("gave shape [1] first and [] when"), "{error}");
    assert!(x.grad().is_none() && w.grad().is_none());
}

#[test]
fn a_panic_in_the_second_run_leaves_all_as_it_was() {
    let _turn = turn();
    let x = leaf(&[2.0]);
    let again = Arc::new(AtomicBool::new(false));
    let (inside, flag) = (x.clone(), Arc::clone(&again));
    let y = checkpoint(move || {
        let y = &inside * Tensor::<f64>::randn([1]);
        assert!(!flag.load(Ordering::SeqCst), "in the second run");
        y
    });
    autograd_core::seed(1);
    let expected = Tensor::<f64>::randn([1]).item();
    autograd_core::seed(1);
    again.store(true, Ordering::SeqCst);
    let retain = BackwardOptions::new().retain_graph(true);
    assert!(catch_unwind(AssertUnwindSafe(|| y.backward_options(retain))).is_err());
    assert_eq!(Tensor::<f64>::randn([1]).item(), expected);
    assert!(is_grad_enabled() && x.grad().is_none());
    again.store(false, Ordering::SeqCst);
    y.backward().unwrap();
    assert_eq!(gradient(&x)[0] * 2.0, y.item());
}

#[test]
fn a_hook_inside_a_piece_runs_in_backward() {
    let x = leaf(&[2.0]);
    let inside = x.clone();
    let y = checkpoint(move || {
        let h = inside.square();
        let hook = |grad: &Tensor<f64>| -> HookResult<_> { Ok(Some(grad * 10.0)) };
        let _ = h.register_hook(hook).unwrap();
        h.exp()
    });
    let _ = y.register_hook(|grad| Ok(Some(grad * 2.0))).unwrap();
    y.backward().unwrap();
    assert!((gradient(&x)[0] - 20.0 * 4.0 * 4_f64.exp()).abs() < 1e-9);
}
