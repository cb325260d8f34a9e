//! User code that panics, wherever the library calls it, and errors: the panic propagates, no
//! gradient is half written, no lock stays locked, and the library remains usable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use autograd_core::nn::{Module, Visitor};
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{
    BackwardOptions, DType, Error, after_backward, backward, checkpoint, fuse, is_grad_enabled,
    jvp, saved_tensors_hooks,
};
use ndarray::{ArrayD, ArrayViewD};
use support::leaf;

const ON_PURPOSE: &str = "on purpose";

/// Panics at the given point.
#[py_layer]
impl Breaks {
    type Saved = Tensor<f64>;
    type Attrs = &'static str;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, at: &'static str) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(at);
        assert!(at != "forward", "{ON_PURPOSE}");
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        assert!(*ctx.attrs() != "backward", "{ON_PURPOSE}");
        dy * ctx.saved_tensor() * 2.0
    }

    fn jvp(ctx: &JvpContext<Self>, x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        assert!(*ctx.attrs() != "jvp", "{ON_PURPOSE}");
        dx * x * 2.0
    }
}

/// The panic propagates; then leaves have no gradient, and everything works.
#[track_caller]
fn breaks(name: &str, leaves: &[&Tensor<f64>], call: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err(name);
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    assert_eq!(text, Some(ON_PURPOSE), "{name}");
    assert!(is_grad_enabled(), "{name}");
    for x in leaves {
        assert!(x.grad().is_none(), "{name}: a gradient was written");
        (*x * *x).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 2.0 * x.item(), "{name}");
        x.clear_grad();
    }
}

#[test]
fn panics_at_every_point_of_user_code() {
    let (x, w) = (leaf(&[3.0]), leaf(&[5.0]));
    let both = [&x, &w];
    breaks("forward", &both, || drop(Breaks::apply(&x, "forward")));
    breaks("backward", &both, || (Breaks::apply(&x, "backward") + &w).backward().unwrap());
    breaks("jvp", &both, || {
        let one = Tensor::from(vec![1.0]);
        drop(jvp(|x| Breaks::apply(&x[0], "jvp"), std::slice::from_ref(&x), &[one]).unwrap());
    });
    let product = || &x * &w;
    breaks("a hook on an output", &both, || {
        let y = product();
        let _ = y.register_hook(|_| panic!("{ON_PURPOSE}")).unwrap();
        (y + &w).backward().unwrap();
    });
    let handle = x.register_hook(|_| panic!("{ON_PURPOSE}")).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| product().backward())).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(ON_PURPOSE));
    assert!(x.grad().is_none() && w.grad().is_none());
    handle.remove();
    breaks("a hook before a node", &both, || {
        let y = product();
        let _ = y.graph_node().unwrap().register_before(|_| panic!("{ON_PURPOSE}"));
        y.backward().unwrap();
    });
    breaks("a hook after a node", &both, || {
        let y = product();
        let _ = y.graph_node().unwrap().register_after(|_, _| panic!("{ON_PURPOSE}"));
        y.backward().unwrap();
    });
    breaks("pack", &both, || {
        let hooks = saved_tensors_hooks(|_| panic!("{ON_PURPOSE}"), |x: &AnyTensor| Ok(x.clone()));
        hooks.run(|| drop(product()));
    });
    breaks("unpack", &both, || {
        let hooks = saved_tensors_hooks(|x| Ok(x.clone()), |_| panic!("{ON_PURPOSE}"));
        hooks.run(product).backward().unwrap();
    });
    breaks("the first run of a checkpoint", &both, || {
        drop(checkpoint(|| -> Tensor<f64> { panic!("{ON_PURPOSE}") }));
    });
    breaks("the second run of a checkpoint", &both, || {
        let (x, runs) = (x.clone(), AtomicUsize::new(0));
        let y = checkpoint(move || {
            assert!(runs.fetch_add(1, Ordering::Relaxed) == 0, "{ON_PURPOSE}");
            &x * 2.0
        });
        (y * &w).backward().unwrap();
    });
    breaks("a formula", &both, || {
        drop(fuse([&x], |_| panic!("{ON_PURPOSE}")));
    });
    breaks("a function of grad mode", &both, || no_grad().run(|| panic!("{ON_PURPOSE}")));
}

/// Callbacks after a backward find all gradients written.
#[test]
fn a_panic_after_a_backward_comes_after_its_gradients() {
    let x = leaf(&[3.0]);
    let _ = x
        .register_hook(|_| {
            after_backward(|| panic!("{ON_PURPOSE}"));
            Ok(None)
        })
        .unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| (&x * 2.0).backward())).unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(ON_PURPOSE));
    assert_eq!(x.grad().unwrap().item(), 2.0);
}

struct BreaksWhenShown;

impl Module for BreaksWhenShown {
    fn visit(&self, _: &mut Visitor<'_>) {
        panic!("{ON_PURPOSE}");
    }
}

#[test]
fn a_module_that_panics() {
    let x = leaf(&[3.0]);
    breaks("visit", &[&x], || drop(BreaksWhenShown.state_dict()));
}

/// In a program a panic is an error, and kept values do not change.
#[test]
fn functions_of_programs() {
    fn broken(_: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        panic!("{ON_PURPOSE}")
    }
    fn double(x: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        2.0 * &x
    }
    fn broken_grad(
        _: ArrayViewD<'_, f64>,
        _: ArrayViewD<'_, f64>,
        _: ArrayViewD<'_, f64>,
    ) -> ArrayD<f64> {
        panic!("{ON_PURPOSE}")
    }
    for forward in [true, false] {
        let program = Program::new();
        let x = program.data("x", [-1, 2], DType::Float64).unwrap();
        let hidden = program.fc(&x, 2).unwrap();
        let out = program.current_block().create_var("out", hidden.dtype(), hidden.shape());
        let out = out.unwrap();
        if forward {
            program.py_func(broken).x(&hidden).out(&out).call().unwrap();
        } else {
            let call = program.py_func(double).x(&hidden).out(&out);
            call.backward_func(broken_grad).call().unwrap();
            let loss = out.mean().unwrap();
            autograd_core::static_graph::Sgd::new(0.1).minimize(&loss).unwrap();
        }
        let executor = Executor::new();
        executor.run(&program.startup(), &[], &[]).unwrap();
        let before = executor.parameter(&program.parameters()[0].name()).unwrap();
        for executor in [&executor, &executor.with_threads(2)] {
            let feed = Tensor::<f64>::ones([3, 2]);
            let error = executor.run(&program, &[("x", &feed)], &[&out]).unwrap_err();
            assert!(matches!(error, Error::Operator { .. }), "{error}");
            assert!(error.to_string().contains(ON_PURPOSE), "{error}");
        }
        let after = executor.parameter(&program.parameters()[0].name()).unwrap();
        assert_eq!(format!("{before}"), format!("{after}"));
    }
}

/// Counts its drops, and panics in one of them.
struct Fuse {
    drops: Arc<AtomicUsize>,
    breaks: bool,
}

impl Drop for Fuse {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        assert!(!self.breaks || thread::panicking(), "{ON_PURPOSE}");
    }
}

#[py_layer]
impl Carries {
    type Attrs = Arc<Fuse>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, fuse: Arc<Fuse>) -> Tensor<f64> {
        ctx.set_attrs(fuse);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let _ = ctx.attrs();
        dy * 2.0
    }
}

/// A chain of ops, the fifth of which has attributes whose destructor panics.
fn chain(x: &Tensor<f64>, drops: &Arc<AtomicUsize>) -> Tensor<f64> {
    (0..10).fold(x * 1.0, |y, i| {
        let fuse = Fuse { drops: Arc::clone(drops), breaks: i == 5 };
        Carries::apply(&y, Arc::new(fuse))
    })
}

#[test]
fn destructors_that_panic() {
    for walk in [false, true] {
        let (x, drops) = (leaf(&[3.0]), Arc::new(AtomicUsize::new(0)));
        let y = chain(&x, &drops);
        let options = BackwardOptions::new().retain_graph(!walk);
        let done = AssertUnwindSafe(|| {
            y.backward_options(options).unwrap();
            drop(y);
        });
        let panic = catch_unwind(done).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some(ON_PURPOSE));
        x.clear_grad();
        (&x * 4.0).backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 4.0);
        // The rest of the chain is dropped with the next node, at the latest: a second panic during
        // unwinding would abort the process.
        assert_eq!(drops.load(Ordering::Relaxed), 10, "walk: {walk}: a node is left");
        assert!(is_grad_enabled());
    }
}

/// A destructor may use the library: no lock is held while it runs.
#[test]
fn destructors_that_compute() {
    struct Computes(Tensor<f64>);
    impl Drop for Computes {
        fn drop(&mut self) {
            let y = enable_grad().run(|| &self.0 * 3.0);
            y.backward().unwrap();
        }
    }
    let (x, other) = (leaf(&[1.0]), leaf(&[2.0]));
    let held = Arc::new(Computes(other.clone()));
    let kept = Arc::clone(&held);
    let y = &x * 2.0;
    let handle = y
        .register_hook(move |_| {
            let _ = &kept;
            Ok(None)
        })
        .unwrap();
    drop((held, handle));
    y.backward().unwrap();
    drop(y);
    assert_eq!(other.grad().unwrap().item(), 3.0);
    assert_eq!(x.grad().unwrap().item(), 2.0);
}

#[test]
fn an_error_among_many_leaves_writes_no_gradient() {
    let leaves: Vec<Tensor<f64>> = (0..100).map(|i| leaf(&[f64::from(i)])).collect();
    let roots = |at: usize, how: &'static str| -> Vec<AnyTensor> {
        let one = |(i, x)| Breaks::apply(x, if i == at { how } else { "nowhere" }).into();
        leaves.iter().enumerate().map(one).collect()
    };
    let seeds = vec![None; 100];
    for at in [0, 50, 99] {
        let outputs = roots(at, "backward");
        let walk = || backward(&outputs, &seeds, BackwardOptions::new());
        assert!(catch_unwind(AssertUnwindSafe(walk)).is_err());
        assert!(leaves.iter().all(|x| x.grad().is_none()), "a panic at {at}");
        let wrong = leaves[at].register_hook(|_| Ok(Some(Tensor::zeros([7])))).unwrap();
        let error = backward(&roots(100, ""), &seeds, BackwardOptions::new()).unwrap_err();
        assert!(matches!(error, Error::HookGradient { .. }), "{error}");
        assert!(leaves.iter().all(|x| x.grad().is_none()), "an error at {at}");
        wrong.remove();
    }
    // Everything is as before.
    backward(&roots(100, ""), &seeds, BackwardOptions::new()).unwrap();
    let outputs = roots(70, "backward");
    let walk = || backward(&outputs, &seeds, BackwardOptions::new());
    assert!(catch_unwind(AssertUnwindSafe(walk)).is_err());
    for (i, x) in leaves.iter().enumerate() {
        assert_eq!(x.grad().unwrap().item(), 2.0 * i as f64);
    }
}

#[test]
fn threads_that_die_lose_only_their_own() {
    let (x, w) = (leaf(&[3.0]), leaf(&[5.0]));
    let dead = AtomicUsize::new(0);
    thread::scope(|scope| {
        for k in 0..8 {
            let (x, w, dead) = (&x, &w, &dead);
            scope.spawn(move || {
                for round in 0..100 {
                    let how = if (k + round) % 3 == 0 { "backward" } else { "nowhere" };
                    let walk = || (Breaks::apply(x, how) + w * x).backward().unwrap();
                    if how == "backward" && round == 99 - k {
                        dead.fetch_add(1, Ordering::Relaxed);
                        assert!(catch_unwind(AssertUnwindSafe(walk)).is_err());
                        return;
                    }
                    let failed = catch_unwind(AssertUnwindSafe(walk)).is_err();
                    assert_eq!(failed, how == "backward");
                }
            });
        }
    });
    let before = w.grad().unwrap().item();
    assert_eq!(before % 3.0, 0.0);
    // A panic that no code of the thread catches.
    let (x2, w2) = (x.clone(), w.clone());
    let killed = thread::spawn(move || (Breaks::apply(&x2, "backward") + &w2 * 1.0).backward());
    assert!(killed.join().is_err());
    assert_eq!(w.grad().unwrap().item(), before);
    w.clear_grad();
    (&w * 2.0).backward().unwrap();
    assert_eq!(w.grad().unwrap().item(), 2.0);
}
