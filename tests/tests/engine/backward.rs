//! Backward: seeds, accumulation, retained graphs, depth.

use std::sync::atomic::{AtomicUsize, Ordering};

use autograd_core::prelude::*;
use autograd_core::{BackwardOptions, Error, backward, grad, is_grad_enabled};
use support::ops::{Add, Identity, Square};
use support::{gradient, leaf};

#[test]
fn a_seed_of_the_outputs_shape() {
    fn run<T: Float>() {
        let t = |data: &[f64]| data.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        let x = Tensor::from_vec([2, 2], t(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        let y = Tensor::from_vec([2, 2], t(&[5.0, 6.0, 7.0, 8.0])).unwrap();
        let seed = Tensor::from_vec([2, 2], t(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        x.set_stop_gradient(false);
        x.matmul(&y).backward_with(&seed).unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), seed.matmul(&y.transpose()).to_vec());
        assert!(y.grad().is_none());
    }
    run::<f32>();
    run::<f64>();
}

#[test]
fn a_seed_is_needed_for_more_than_one_element() {
    // Paddle starts with ones here. This library requires a seed, as PyTorch does.
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = &x * 2.0;
    let error = y.backward().unwrap_err();
    let Error::SeedMissing { op: "backward", found, .. } = &error else { panic!("{error}") };
    assert_eq!(found, &[3]);
    assert!(error.to_string().contains("backward_with"), "{error}");
    y.backward_with(&Tensor::from(vec![1.0, 10.0, 100.0])).unwrap();
    assert_eq!(gradient(&x), [2.0, 20.0, 200.0]);
}

#[test]
fn a_seed_of_another_shape() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let y = &x * 2.0;
    let error = y.backward_with(&Tensor::from(vec![1.0, 2.0])).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("backward: the seed for the output of mul (called at tests/"),
        "{error}"
    );
    assert!(error.ends_with(") must have its shape [3], found [2]"), "{error}");
    // The failed call freed nothing.
    y.backward_with(&Tensor::ones([3])).unwrap();
    assert_eq!(gradient(&x), [2.0; 3]);
    let seed = [Some(Tensor::<f32>::ones([3]).into())];
    let error = backward(&[(&x * 2.0).into()], &seed, BackwardOptions::new()).unwrap_err();
    assert!(matches!(error, Error::ElementType { .. }), "{error}");
}

#[test]
fn a_root_that_another_root_is_computed_from() {
    let x = leaf(&[2.0]);
    let y = x.square();
    let z = y.pow(3.0);
    let seeds = [Some(Tensor::from(vec![10.0]).into()), Some(Tensor::from(vec![1.0]).into())];
    backward(&[y.into(), z.into()], &seeds, BackwardOptions::new()).unwrap();
    assert_eq!(gradient(&x), [232.0]);
}

#[test]
fn roots_that_stand_twice_or_not_at_all() {
    let x = leaf(&[2.0]);
    let y = x.square();
    let run = |outputs: &[AnyTensor], seeds: &[Option<AnyTensor>]| {
        backward(outputs, seeds, BackwardOptions::new())
    };
    let error = run(&[y.clone().into(), y.clone().into()], &[None, None]).unwrap_err();
    assert!(matches!(error, Error::Duplicate { op: "backward", .. }), "{error}");
    assert!(matches!(run(&[], &[]).unwrap_err(), Error::Count { found: 0, .. }));
    let error = run(&[y.clone().into()], &[None, None]).unwrap_err();
    assert!(matches!(error, Error::Count { expected: 1, found: 2, .. }), "{error}");
    y.backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

#[test]
fn a_root_without_gradient_is_passed_over() {
    let (x, c) = (leaf(&[2.0]), Tensor::from(vec![1.0]));
    let outputs = [(&c * 2.0).into(), (&x * 1.0).into()];
    backward(&outputs, &[None, None], BackwardOptions::new()).unwrap();
    assert_eq!(gradient(&x), [1.0]);
    c.backward().unwrap();
    assert!(c.grad().is_none());
}

#[test]
fn two_roots_share_a_leaf() {
    let [x, y, a, b, q] = [1.0, 2.0, 3.0, 4.0, 5.0].map(|v| leaf(&[v]));
    let z = &x + &y + &q * 2.0;
    let c = &a * &b + &q * 2.0;
    let seeds = [Some(Tensor::from(vec![7.0]).into()), Some(Tensor::from(vec![11.0]).into())];
    backward(&[z.into(), c.into()], &seeds, BackwardOptions::new()).unwrap();
    let grads = [&x, &y, &a, &b, &q].map(|t| gradient(t)[0]);
    assert_eq!(grads, [7.0, 7.0, 44.0, 33.0, 36.0]);
}

#[test]
fn backward_from_a_leaf() {
    let x = leaf(&[4.0]);
    x.backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
    x.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    let y = leaf(&[1.0, 2.0]);
    let seed = Tensor::from(vec![5.0, 6.0]);
    y.backward_with(&seed).unwrap();
    assert_eq!(gradient(&y), [5.0, 6.0]);
    // The leaf's gradient is a separate tensor, not the seed.
    y.grad().unwrap().fill(0.0).unwrap();
    assert_eq!(seed.to_vec(), [5.0, 6.0]);
}

#[test]
fn gradients_set_from_outside() {
    let x = leaf(&[1.0, 1.0]);
    let own = Tensor::from(vec![1.0, 1.0]);
    x.set_grad(Some(&own)).unwrap();
    (&x * 2.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0, 3.0]);
    assert_eq!(own.to_vec(), [1.0, 1.0]);
    x.set_grad(None).unwrap();
    assert!(x.grad().is_none());
    x.clear_grad();
    (&x * 2.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 2.0]);
    x.clear_grad();
    assert!(x.grad().is_none());

    let error = x.set_grad(Some(&Tensor::ones([3]))).unwrap_err();
    assert!(matches!(error, Error::Shape { op: "set_grad", .. }), "{error}");
    let error = (&x * 2.0).set_grad(Some(&own)).unwrap_err();
    assert!(matches!(error, Error::Unsupported { op: "set_grad", .. }), "{error}");
}

#[test]
fn a_second_backward() {
    type Op = fn(&Tensor<f64>) -> Tensor<f64>;
    let ops: [Op; 3] = [|x| x.tanh(), |x| x + 1.0, |x| x * 2.0];
    for f in ops {
        let x = leaf(&[0.5]);
        let y = f(&x);
        y.backward().unwrap();
        let first = gradient(&x);
        let error = y.backward().unwrap_err();
        assert!(matches!(error, Error::GraphFreed { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("retain_graph") && text.contains("engine/backward.rs"), "{text}");
        assert_eq!(gradient(&x), first);
    }
}

#[test]
fn a_second_backward_over_a_retained_graph() {
    let retain = || BackwardOptions::new().retain_graph(true);
    let x = leaf(&[3.0]);
    let y = Square::apply(&x).tanh() + 1.0;
    y.backward_options(retain()).unwrap();
    let once = gradient(&x)[0];
    y.backward_options(retain()).unwrap();
    y.backward().unwrap();
    assert_eq!(gradient(&x), [once + once + once]);
    assert!(matches!(y.backward().unwrap_err(), Error::GraphFreed { .. }));
    // A custom op that saved nothing is not an exception.
    let y = Identity::apply(&x);
    y.backward().unwrap();
    assert!(matches!(y.backward().unwrap_err(), Error::GraphFreed { op: "Identity", .. }));
}

#[test]
fn stop_gradient_on_the_way_prunes_what_is_behind() {
    let (v, w, x) = (leaf(&[2.0]), leaf(&[3.0]), leaf(&[5.0]));
    let a = &v * &x;
    a.set_stop_gradient(true);
    let b = &w * &x;
    (&a * &b).sum().backward().unwrap();
    assert!(v.grad().is_none());
    assert_eq!((gradient(&w), gradient(&x)), (vec![50.0], vec![30.0]));

    // No gradient flows through integers.
    x.clear_grad();
    let labels = (&x * 2.0).cast::<i64>();
    (labels.cast::<f64>() * &w).sum().backward().unwrap();
    assert!(x.grad().is_none());
}

#[test]
fn an_unused_part() {
    let x = leaf(&[0.0; 10]);
    let parts = x.split(5, 0);
    parts[1].retain_grads().unwrap();
    (&parts[2] * 4.0 + 2.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [0.0, 0.0, 0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
    // Parts are separate ops: a part from which nothing was computed gets no gradient.
    assert!(parts[1].grad().is_none());
}

#[test]
fn a_part_with_stop_gradient_in_a_join() {
    let (v, w, c) = (leaf(&[2.0]), leaf(&[3.0]), leaf(&[4.0]));
    let (one, two) = (&v * 2.0, &w * 2.0);
    one.set_stop_gradient(true);
    Tensor::concat(&[&one, &two, &c], 0).sum().backward().unwrap();
    assert!(one.grad().is_none() && v.grad().is_none());
    assert_eq!((gradient(&w), gradient(&c)), (vec![2.0], vec![1.0]));
}

#[test]
fn detach_cuts() {
    let x = leaf(&[1.0, 2.0]);
    let z = &x + (&x * 2.0).detach();
    z.sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0, 1.0]);
    let y = &x * 2.0;
    let detached = y.detach();
    assert!(detached.stop_gradient() && detached.is_leaf() && !y.stop_gradient());
    assert_eq!(detached.to_vec(), y.to_vec());
    // Cuts the tensor itself from now on.
    x.clear_grad();
    let first = &y * 1.0;
    y.set_stop_gradient(true);
    (first + &y).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 2.0]);
    // A clone is the same tensor and keeps the graph.
    x.clear_grad();
    (&x * 2.0).clone().sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0, 2.0]);
}

#[test]
fn broadcasting_is_summed_back() {
    let a = leaf(&[1.0, 2.0]).reshape([2, 1]).detach();
    let b = leaf(&[1.0, 2.0, 3.0]);
    a.set_stop_gradient(false);
    (&a * &b).sum().backward().unwrap();
    let da = a.grad().unwrap();
    assert_eq!((da.shape(), da.to_vec()), (&[2, 1][..], vec![6.0, 6.0]));
    assert_eq!(gradient(&b), [3.0, 3.0, 3.0]);
}

#[test]
fn a_deep_graph_with_skips_is_dropped() {
    let x = leaf(&[1.0]);
    let mut y = &x * 1.0;
    let mut before = y.clone();
    for i in 0..100_000 {
        let skip = before;
        before = y.clone();
        y = &y * 0.5;
        y += &skip * 0.5;
        if i % 3 == 0 {
            y += 1e-9;
        }
    }
    drop((y, before));
}

/// Counts down: its backward builds a graph that contains the op again, and runs it.
#[py_layer]
impl Countdown {
    type Saved = Tensor<f64>;
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, left: usize) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(left);
        x * 1.0
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        COUNTDOWNS.fetch_add(1, Ordering::Relaxed);
        let left = *ctx.attrs();
        if left == 0 {
            return Ok(dy.clone());
        }
        let _on = enable_grad();
        let x = ctx.saved_tensor().detach();
        x.set_stop_gradient(false);
        Countdown::apply(&x, left - 1).sum().backward()?;
        x.grad().map_or_else(|| unreachable!("backward left it"), Ok).map(|g| g * dy)
    }
}

static COUNTDOWNS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn backward_within_backward_two_thousand_deep() {
    // Each level calls the user's own backward, so it needs some KiB of stack: a thread's default
    // stack would hold a few hundred levels.
    let run = || {
        for levels in [2000, 200] {
            let x = leaf(&[3.0]);
            Countdown::apply(&x, levels).backward().unwrap();
            assert_eq!(gradient(&x), [1.0]);
        }
    };
    std::thread::Builder::new().stack_size(128 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_graph_within_backward() {
    #[py_layer]
    impl Inner {
        type Saved = Tensor<f64>;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(x);
            x.square()
        }

        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            let _on = enable_grad();
            let x = ctx.saved_tensor().detach();
            x.set_stop_gradient(false);
            (&x * &x).sum().backward().unwrap();
            x.grad().unwrap() * dy
        }
    }
    let x = leaf(&[3.0]);
    Inner::apply(&x).backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);
}

#[test]
fn an_error_within_backward_within_backward() {
    #[py_layer]
    impl Fails {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }

        fn backward(
            _ctx: &BackwardContext<Self>,
            _dy: &Tensor<f64>,
        ) -> Result<Tensor<f64>, String> {
            Err("the inner one failed".into())
        }
    }
    #[py_layer]
    impl Outer {
        type Saved = Tensor<f64>;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(x);
            x * 1.0
        }

        fn backward(
            ctx: &BackwardContext<Self>,
            _dy: &Tensor<f64>,
        ) -> autograd_core::Result<Tensor<f64>> {
            let _on = enable_grad();
            let x = ctx.saved_tensor().detach();
            x.set_stop_gradient(false);
            Fails::apply(&x).backward()?;
            Ok(x)
        }
    }
    let x = leaf(&[3.0]);
    let error = Outer::apply(&x).backward().unwrap_err().to_string();
    assert!(error.contains("Outer") && error.contains("the inner one failed"), "{error}");
    assert!(x.grad().is_none() && is_grad_enabled());
    (&x * 2.0).backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

#[test]
fn each_layer_runs_once() {
    // How often, not in which order: the scheduler decides that.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    #[py_layer]
    impl Counted {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            CALLS.fetch_add(1, Ordering::Relaxed);
            dy.clone()
        }
    }
    #[py_layer]
    impl Reentrant {
        type Saved = Tensor<f64>;
        type Attrs = usize;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, left: usize) -> Tensor<f64> {
            ctx.save_for_backward(x);
            ctx.set_attrs(left);
            x * 1.0
        }

        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            REENTRANT.fetch_add(1, Ordering::Relaxed);
            if *ctx.attrs() > 0 {
                let _on = enable_grad();
                let x = ctx.saved_tensor().detach();
                x.set_stop_gradient(false);
                Reentrant::apply(&x, ctx.attrs() - 1).backward().unwrap();
            }
            dy.clone()
        }
    }
    static REENTRANT: AtomicUsize = AtomicUsize::new(0);
    let (a, b) = (leaf(&[6.0]), leaf(&[9.0]));
    (Counted::apply(&a) * Reentrant::apply(&b, 9)).backward().unwrap();
    assert_eq!((CALLS.load(Ordering::Relaxed), REENTRANT.load(Ordering::Relaxed)), (1, 10));
    assert_eq!((gradient(&a), gradient(&b)), (vec![9.0], vec![6.0]));
}

#[test]
fn sums_are_the_same_in_every_run() {
    // The order of sums is not specified, but it must always be the same.
    let run = |factors: [f32; 3]| {
        let x = Tensor::<f32>::from(1.0);
        x.set_stop_gradient(false);
        factors.map(|f| &x * f).into_iter().reduce(|a, b| a + b).unwrap().backward().unwrap();
        x.grad().unwrap().item()
    };
    for factors in [[1e8, 1.0, -1e8], [1.0, 1e8, -1e8], [1e8, -1e8, 1.0]] {
        let first = run(factors);
        assert!((0..20).all(|_| run(factors) == first));
        let on_threads: Vec<_> = (0..4).map(|_| std::thread::spawn(move || run(factors))).collect();
        assert!(on_threads.into_iter().all(|t| t.join().unwrap() == first));
    }
}

#[test]
fn one_tensor_returned_for_two_inputs() {
    for create_graph in [false, true] {
        let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
        let options = BackwardOptions::new().create_graph(create_graph);
        Add::apply(&a, &b).backward_options(options).unwrap();
        (&a * 5.0).backward_options(options).unwrap();
        assert_eq!((gradient(&a), gradient(&b)), (vec![6.0], vec![1.0]));
        // A change in place of one does not affect the other.
        a.clear_grad();
        b.clear_grad();
        (&a + &b).backward_options(options).unwrap();
        no_grad().run(|| a.grad().unwrap().fill(100.0)).unwrap();
        assert_eq!(gradient(&b), [1.0]);
    }
}

#[test]
fn a_backward_that_changes_its_gradient() {
    #[py_layer]
    impl Scribbles {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.copy_from(&(dy * 100.0)).unwrap();
            dy.clone()
        }
    }
    let x = leaf(&[1.0]);
    let s = Scribbles::apply(&x) + Scribbles::apply(&x);
    s.retain_grads().unwrap();
    let seed = Tensor::from(vec![1.0]);
    s.backward_with(&seed).unwrap();
    assert_eq!(gradient(&x), [200.0]);
    assert_eq!((gradient(&s), seed.to_vec()), (vec![1.0], vec![1.0]));
    // Even if the seed reaches the op directly.
    let x = leaf(&[1.0]);
    Scribbles::apply(&x).backward_with(&seed).unwrap();
    assert_eq!((gradient(&x), seed.to_vec()), (vec![100.0], vec![1.0]));
}

#[test]
fn gradients_in_two_stages() {
    let leaves: Vec<_> = (0..4).map(|i| leaf(&[f64::from(i)])).collect();
    let numbers = || (0..4).map(f64::from);
    let values: Vec<_> = leaves.iter().zip(numbers()).map(|(l, i)| l * i + l.square()).collect();
    let shards: Vec<_> = values.iter().map(Tensor::detach).collect();
    shards.iter().for_each(|s| s.set_stop_gradient(false));
    let loss =
        shards.iter().zip(numbers()).fold(Tensor::from(vec![0.0]), |sum, (s, i)| sum + s * i);
    for (value, shard) in values.iter().zip(&shards) {
        let d = grad_of(&loss, shard);
        value.backward_with(&d).unwrap();
    }
    let found: Vec<f64> = leaves.iter().map(|l| gradient(l)[0]).collect();
    assert_eq!(found, [0.0, 3.0, 12.0, 27.0]);
}

/// The gradient of a loss, whose graph is retained.
fn grad_of(loss: &Tensor<f64>, x: &Tensor<f64>) -> Tensor<f64> {
    let options = autograd_core::GradOptions::new().retain_graph(true);
    autograd_core::grad_with(&[loss], &[x], options).unwrap().remove(0).unwrap()
}

#[test]
fn a_branch_of_indices_has_no_gradient() {
    let x = leaf(&[1.0, 5.0, 3.0]);
    let hooked = &x * 1.0;
    let seen = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&seen);
    let unused = hooked.square();
    let count = move |_: &Tensor<f64>| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    };
    let _ = unused.register_hook(count).unwrap();
    let index = hooked.argmax(0).cast::<f64>();
    (hooked.max() + index).backward().unwrap();
    assert_eq!(gradient(&x), [0.0, 1.0, 0.0]);
    assert_eq!(seen.load(Ordering::Relaxed), 0);
}

#[test]
fn training_by_hand() {
    let mut w = leaf(&[3.0]);
    for expected in [2.4, 1.92, 1.536] {
        Square::apply(&w).backward().unwrap();
        let step = w.grad().unwrap() * 0.1;
        no_grad().run(|| w -= &step);
        w.clear_grad();
        assert!((w.to_vec()[0] - expected).abs() < 1e-12);
        assert!(w.is_leaf() && !w.stop_gradient());
    }
}

#[test]
fn powers_of_zero() {
    let x = leaf(&[0.0]);
    x.pow(0.0).backward().unwrap();
    assert_eq!(gradient(&x), [0.0]);
    x.clear_grad();
    x.pow(Tensor::from(vec![0.0])).backward().unwrap();
    assert_eq!(gradient(&x), [0.0]);
    let (base, exponent) = (Tensor::from(vec![0.0; 3]), leaf(&[-1.0, 0.0, 1.0]));
    let y = base.pow(&exponent).sum();
    assert_eq!(gradient_of(&y, &exponent), [f64::NEG_INFINITY, 0.0, 0.0]);
}

fn gradient_of(y: &Tensor<f64>, x: &Tensor<f64>) -> Vec<f64> {
    grad(&[y], &[x]).unwrap()[0].to_vec()
}
