//! Limits of the engine: depth, width, threads, and user code that panics.

#![allow(clippy::assign_op_pattern, reason = "`y = y + x` is an op, `y += x` another, in place")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use autograd_core::{
    BackwardOptions, Error, GradOptions, Tensor, enable_grad, grad, grad_with, is_grad_enabled,
    no_grad,
};
use support::leaf;

const MIB: usize = 1 << 20;

/// Runs on a thread with a default stack.
fn on_small_stack(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(2 * MIB).spawn(f).unwrap().join().unwrap();
}

#[test]
fn ten_million_chained_ops() {
    on_small_stack(|| {
        let x = Tensor::<f32>::from(1.0);
        x.set_stop_gradient(false);
        let mut y = &x + 1e-9;
        for _ in 1..10_000_000 {
            y = y + 1e-9;
        }
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 1.0);
    });
}

#[test]
fn a_chain_that_was_never_run_backward() {
    on_small_stack(|| {
        let x = leaf(&[1.0]);
        let mut y = &x * 1.0;
        for i in 0..1_000_000 {
            y = match i % 3 {
                0 => y.sin(),
                1 => &y * &x,
                _ => y.reshape([1]),
            };
        }
        drop(y);
        assert!(x.grad().is_none());
    });
}

#[test]
fn a_chain_held_by_what_was_saved() {
    // Each node is held by an edge and by a saved tensor, and a gradient by the leaf at the end.
    on_small_stack(|| {
        let x = leaf(&[1.0 - 1e-7]);
        let mut y = &x * 1.0;
        for _ in 0..50_000 {
            y = &y * &y.sqrt().square().sqrt();
            y = y.sqrt().sqrt();
            y = &y * &y;
        }
        let options = || GradOptions::new().create_graph(true);
        let dx = grad_with(&[&y], &[&x], options()).unwrap().remove(0).unwrap();
        drop(y);
        drop(dx);
    });
}

#[test]
fn a_chain_that_retains_its_graph_and_its_gradients_graph() {
    on_small_stack(|| {
        let x = leaf(&[0.5]);
        let mut y = &x * 1.0;
        for _ in 0..200_000 {
            y = y.sin() + 0.1;
        }
        y.backward_options(BackwardOptions::new().create_graph(true)).unwrap();
        let dx = x.grad().unwrap();
        assert!(!dx.stop_gradient());
        x.clear_grad();
        drop(y);
        dx.backward().unwrap();
        assert!(x.grad().is_some());
    });
}

#[test]
fn a_million_uses_of_one_leaf() {
    on_small_stack(|| {
        let x = leaf(&[2.0]);
        let mut sum = &x * 1.0;
        for _ in 1..1_000_000 {
            sum = sum + &x;
        }
        sum.backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 1e6);
        // And side by side: a list of as many nodes on one level.
        let parts: Vec<Tensor<f64>> = (0..200_000).map(|_| &x * 1.0).collect();
        let joined = Tensor::concat(&parts, 0);
        drop(parts);
        x.clear_grad();
        joined.sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 2e5);
    });
}

#[test]
fn a_diamond_of_diamonds_is_linear() {
    let x = leaf(&[1.0]);
    let mut y = &x * 1.0;
    for _ in 0..500 {
        y = (&y * 0.5) + (&y * 0.5);
    }
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 1.0);
    let z =
        (0..200).fold(&x * 1.0, |z, _| &z * 0.25 + &z * 0.25 + z.sin().square() * 0.0 + &z * 0.5);
    assert!((grad(&[&z], &[&x]).unwrap()[0].item() - 1.0).abs() < 1e-12);
}

#[test]
fn backward_from_many_threads_on_shared_leaves() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 200;
    for shape in [&[4][..], &[100, 30]] {
        let (x, w) = (Tensor::<f64>::ones(shape), Tensor::<f64>::ones(shape));
        x.set_stop_gradient(false);
        w.set_stop_gradient(false);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        (&x * &w * 2.0 + x.square()).sum().backward().unwrap();
                    }
                });
            }
        });
        // Sums of small integers are exact, so every contribution must be present.
        let total = (THREADS * ROUNDS) as f64;
        assert!(x.grad().unwrap().to_vec().iter().all(|&g| g == 4.0 * total));
        assert!(w.grad().unwrap().to_vec().iter().all(|&g| g == 2.0 * total));
    }
}

#[test]
fn backward_from_many_threads_on_a_shared_retained_graph() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 100;
    let x = leaf(&[1.0, 2.0]);
    let y = (x.square() * &x + x.exp().ln()).sum();
    let options = BackwardOptions::new().retain_graph(true);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    y.backward_options(options).unwrap();
                    let dx =
                        grad_with(&[&y], &[&x], GradOptions::new().retain_graph(true)).unwrap();
                    assert!(dx[0].as_ref().is_some_and(|dx| (dx.at(&[1]) - 13.0).abs() < 1e-12));
                }
            });
        }
    });
    let total = (THREADS * ROUNDS) as f64;
    let found = x.grad().unwrap().to_vec();
    assert!((found[0] - 4.0 * total).abs() < 1e-6 && (found[1] - 13.0 * total).abs() < 1e-6);
}

#[test]
fn of_many_threads_on_a_graph_that_is_not_retained_one_wins() {
    for _ in 0..50 {
        let x = leaf(&[1.0]);
        let y = x.tanh().sin().exp();
        let wins = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| match y.backward() {
                    Ok(()) => drop(wins.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => assert!(matches!(error, Error::GraphFreed { .. }), "{error}"),
                });
            }
        });
        assert_eq!(wins.load(Ordering::Relaxed), 1);
        let once = grad(&[&x.tanh().sin().exp()], &[&x]).unwrap()[0].item();
        assert_eq!(x.grad().unwrap().item(), once);
    }
}

#[test]
fn retained_gradients_from_many_threads() {
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    h.retain_grads().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let options = BackwardOptions::new().retain_graph(true);
                    (&h * 3.0).backward_options(options).unwrap();
                }
            });
        }
    });
    assert_eq!(h.grad().unwrap().item(), 2400.0);
    assert_eq!(x.grad().unwrap().item(), 4800.0);
}

#[test]
fn modes_belong_to_their_thread() {
    let _off = no_grad();
    thread::spawn(|| assert!(is_grad_enabled())).join().unwrap();
    let x = leaf(&[1.0]);
    assert!((&x * 2.0).stop_gradient());
    assert!(!enable_grad().run(|| &x * 2.0).stop_gradient());
    assert!(!is_grad_enabled());
}

#[test]
fn a_panic_in_a_hook_leaves_everything_usable() {
    for on_leaf in [false, true] {
        let x = leaf(&[1.0]);
        let w = leaf(&[5.0]);
        let h = &x * &w;
        let y = h.sin() + &w;
        let armed = Arc::new(AtomicBool::new(true));
        let trigger = Arc::clone(&armed);
        let hook = move |_: &Tensor<f64>| {
            assert!(!trigger.load(Ordering::Relaxed), "the hook panics");
            Ok(None)
        };
        let handle = if on_leaf { x.register_hook(hook) } else { h.register_hook(hook) }.unwrap();
        let options = BackwardOptions::new().retain_graph(true);
        let panic = catch_unwind(AssertUnwindSafe(|| y.backward_options(options))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the hook panics"));
        // Nothing is half written, and the mode is restored.
        assert!(x.grad().is_none() && w.grad().is_none());
        assert!(is_grad_enabled());
        armed.store(false, Ordering::Relaxed);
        y.backward_options(options).unwrap();
        let expected = 5.0 * 5_f64.cos();
        assert_eq!(x.grad().unwrap().item(), expected);
        assert!(handle.remove() && !handle.remove());
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), expected + expected);
    }
}

#[test]
fn an_error_in_a_hook_writes_no_gradient() {
    let x = leaf(&[1.0]);
    let w = leaf(&[5.0]);
    let wrong = x.register_hook(|_| Ok(Some(Tensor::zeros([7])))).unwrap();
    let error = (&x * &w).backward().unwrap_err();
    assert!(matches!(error, Error::HookGradient { op: "a leaf", .. }), "{error}");
    assert!(x.grad().is_none() && w.grad().is_none());
    wrong.remove();
    (&x * &w).backward().unwrap();
    assert_eq!((x.grad().unwrap().item(), w.grad().unwrap().item()), (5.0, 1.0));
}

#[test]
fn a_hook_may_use_the_library() {
    let x = leaf(&[3.0]);
    let inner = x.clone();
    // Its own backward, on the leaf to which the outer one is about to write.
    let handle = x
        .register_hook(move |grad| {
            if inner.grad().is_none() {
                inner.set_grad(Some(&Tensor::from(vec![100.0])))?;
            }
            let z = leaf(&[2.0]);
            // Hooks run in the mode of the backward, which by default records nothing.
            enable_grad().run(|| z.square().sum()).backward()?;
            Ok(Some(grad + z.grad().map_or(0.0, |g| g.item())))
        })
        .unwrap();
    (&x * 2.0).backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 106.0);
    // The hook holds the tensor that holds the hook.
    handle.remove();
}

#[test]
fn a_hook_that_scribbles_on_its_gradient_spoils_nobody_elses() {
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let _ = a
        .register_hook(|grad| {
            grad.fill(50.0)?;
            Ok(None)
        })
        .unwrap();
    let h = &a * 1.0;
    let _ = h
        .register_hook(|grad| {
            grad.fill(7.0)?;
            Ok(None)
        })
        .unwrap();
    let seed = Tensor::from(vec![1.0]);
    (&h + &b).backward_with(&seed).unwrap();
    assert_eq!((b.grad().unwrap().to_vec(), seed.to_vec()), (vec![1.0], vec![1.0]));
    assert_eq!(a.grad().unwrap().to_vec(), [50.0]);
}

#[test]
fn kept_gradients_of_outputs_are_differentiable_where_the_backward_is_recorded() {
    let x = leaf(&[2.0]);
    let h = x.square();
    h.retain_grads().unwrap();
    let y = h.square();
    y.backward_options(BackwardOptions::new().create_graph(true)).unwrap();
    // dy/dh = 2 h = 2 x², and its slope along x is 4 x.
    let dh = h.grad().unwrap();
    assert_eq!(dh.item(), 8.0);
    assert_eq!(grad(&[&dh], &[&x]).unwrap()[0].item(), 8.0);
}

#[test]
fn a_recorded_gradient_stays_connected_with_its_seed() {
    let (x, seed) = (leaf(&[2.0]), leaf(&[3.0]));
    let outputs = [x.square().into()];
    let seeds = [Some(seed.clone().into())];
    let options = BackwardOptions::new().create_graph(true);
    autograd_core::backward(&outputs, &seeds, options).unwrap();
    let dx = x.grad().unwrap();
    assert_eq!(grad(&[&dx], &[&seed]).unwrap()[0].item(), 4.0);
    // Even if the gradient is the seed itself.
    x.clear_grad();
    autograd_core::backward(&[x.clone().into()], &seeds, options).unwrap();
    let dx = x.grad().unwrap();
    assert_eq!(grad(&[&dx], &[&seed]).unwrap()[0].item(), 1.0);
    no_grad().run(|| dx.fill(100.0)).unwrap();
    assert_eq!(seed.to_vec(), [3.0]);
}
