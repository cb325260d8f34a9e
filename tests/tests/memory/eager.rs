//! Memory in use, and when it is freed: counted by the allocator, with the pool's free buffers
//! unless said otherwise.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::measured::{MEMORY, alone};
use autograd_core::nn::parameter;
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{
    BackwardOptions, DType, buffer_pool_bytes, checkpoint, empty_buffer_pool, grad,
    saved_tensors_hooks,
};
use ndarray::{Array1, s};
use support::ops::Tanh;

/// Elements of a tensor of `TENSOR` bytes.
const N: usize = 1 << 20;
/// 4 MiB.
const TENSOR: usize = N * size_of::<f32>();
const OPS: usize = 50;

/// The peak memory in use during `f`, in tensors, in addition to the memory in use
/// before.
fn peak(f: impl FnOnce()) -> f64 {
    empty_buffer_pool();
    tensors(crate::measured::peak(f))
}

fn tensors(bytes: usize) -> f64 {
    bytes as f64 / TENSOR as f64
}

/// Bytes in use, without the pool's.
fn live() -> usize {
    MEMORY.current_usage() - buffer_pool_bytes()
}

/// How many more tensors are held than when `before` bytes were in use.
fn since(before: usize) -> f64 {
    tensors(live()) - tensors(before)
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.1, "{found:.3} tensors, expected {expected}");
}

fn leaf() -> Tensor {
    let x = Tensor::<f32>::full([1024, 1024], 0.5);
    x.set_stop_gradient(false);
    x
}

/// Fifty ops, of which only the last result is kept.
fn chain(x: &Tensor, op: impl Fn(&Tensor) -> Tensor) -> Tensor {
    (1..OPS).fold(op(x), |y, _| op(&y))
}

#[test]
fn fifty_custom_ops_hold_fifty_saved_tensors_and_one_gradient() {
    alone!();
    let x = leaf();
    // The square of the saved tensor needs no buffer: it is computed in the pass of the product, which
    // overwrites the gradient.
    let found = peak(|| chain(&x, Tanh::apply).mean().backward().unwrap());
    assert_near(found, OPS as f64 + 1.0);
    // Again, with the pool full and an existing gradient, to which the new one is added.
    let again = crate::measured::peak(|| chain(&x, Tanh::apply).mean().backward().unwrap());
    let again = tensors(again);
    assert!(again < 2.0, "{again}");
}

#[test]
fn so_they_do_without_a_pool() {
    alone!();
    autograd_core::set_buffer_pool_limit(0);
    let x = leaf();
    let found = peak(|| chain(&x, Tanh::apply).mean().backward().unwrap());
    assert_near(found, OPS as f64 + 1.0);
}

#[test]
fn forward_holds_what_is_saved_and_nothing_else() {
    alone!();
    let x = leaf();
    assert_near(peak(|| drop(chain(&x, Tanh::apply))), OPS as f64);
    assert_near(peak(|| drop(chain(&x, Tensor::tanh))), OPS as f64);
    // A sum saves nothing and is deferred: several are computed at once, in place. With recording off
    // nothing is saved at all: each result is computed from the previous one.
    assert_near(peak(|| drop(chain(&x, |x| x + 1.0))), 1.0);
    assert_near(peak(|| drop(no_grad().run(|| chain(&x, Tanh::apply)))), 2.0);
}

#[test]
fn a_step_writes_where_the_numbers_are() {
    alone!();
    let p = parameter(Tensor::<f32>::zeros([1024, 1024]));
    let mut adam = Optimizer::new(&p, Adam::new(0.1));
    for moments in [2.0, 0.0, 0.0] {
        p.clear_grad();
        (&p + 1.0).square().sum().backward().unwrap();
        assert_near(peak(|| adam.step().unwrap()), moments);
    }
    assert!(p.to_vec().iter().all(|&x| x < -0.2));
}

#[test]
fn built_in_ops_need_one_buffer_for_the_gradient() {
    alone!();
    let x = leaf();
    assert_near(peak(|| chain(&x, Tensor::tanh).mean().backward().unwrap()), OPS as f64 + 1.0);
}

#[test]
fn saved_tensors_and_gradients_go_as_soon_as_they_are_used() {
    alone!();
    let x = leaf();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let before = live();
    let y = chain(&x, |x| {
        let y = Tanh::apply(x);
        let seen = Arc::clone(&seen);
        let _ = y.graph_node().unwrap().register_before(move |_| {
            seen.lock().unwrap().push(live());
            Ok(None)
        });
        y
    });
    let loss = y.mean();
    drop(y);
    loss.backward().unwrap();
    // When op number `k` of the walk runs, the ops before it hold nothing: in use are the saved tensors
    // of the rest and one gradient (of the first op, a single number).
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), OPS);
    for (k, &bytes) in seen.iter().enumerate() {
        let gradient = if k == 0 { 0.0 } else { 1.0 };
        assert_near(tensors(bytes - before), (OPS - k) as f64 + gradient);
    }
    // Only the gradient of the leaf remains.
    assert_near(since(before), 1.0);
}

#[test]
fn a_retained_graph_keeps_what_is_saved_and_no_gradient() {
    alone!();
    let x = leaf();
    let before = live();
    let loss = chain(&x, Tanh::apply).mean();
    loss.backward_options(BackwardOptions::new().retain_graph(true)).unwrap();
    assert_near(since(before), OPS as f64 + 1.0);
    x.clear_grad();
    assert_near(since(before), OPS as f64);
    drop(loss);
    assert_near(since(before), 0.0);
}

#[test]
fn a_graph_that_is_never_walked_is_freed() {
    alone!();
    let x = leaf();
    let before = live();
    let y = chain(&x, Tanh::apply);
    assert_near(since(before), OPS as f64);
    drop(y);
    assert_near(since(before), 0.0);
}

#[test]
fn grad_needs_no_more_than_backward() {
    alone!();
    let x = leaf();
    let found = peak(|| drop(grad(&[&chain(&x, Tanh::apply).mean()], &[&x]).unwrap()));
    assert_near(found, OPS as f64 + 1.0);
}

#[test]
fn a_wide_graph_holds_one_sum() {
    alone!();
    let x = leaf();
    // Each of the fifty paths gives a gradient of one tensor; they are added as they arrive.
    let found = peak(|| {
        let sum = (0..OPS).map(|k| (&x * k as f32).sum()).reduce(|a, b| a + b).unwrap();
        sum.backward().unwrap();
    });
    assert!(found < 3.1, "{found}");
}

#[test]
fn checkpoints_hold_the_cuts_and_one_piece() {
    alone!();
    let x = leaf();
    let (pieces, length) = (5, OPS / 5);
    let found = peak(|| {
        let mut y = x.clone();
        for _ in 0..pieces {
            let start = y.clone();
            y = checkpoint(move || (0..length).fold(start.clone(), |y, _| Tanh::apply(&y)));
        }
        y.mean().backward().unwrap();
    });
    // The results of the pieces, the saved tensors of one piece (its last result is among them), and
    // the temporaries of an op.
    assert!(found < (pieces + length) as f64 + 2.1, "{found}");
}

#[test]
fn packing_frees_what_was_saved() {
    alone!();
    let x = leaf();
    // All numbers are equal, so one of them is enough.
    let hooks = || {
        saved_tensors_hooks(
            |saved| match saved {
                AnyTensor::Float32(saved) => Ok(saved.at(&[0, 0])),
                _ => Err("not of f32".into()),
            },
            |&first| Ok(Tensor::<f32>::full([1024, 1024], first).into()),
        )
    };
    let plain = || chain(&x, Tanh::apply).mean();
    let built_in = || chain(&x, |x| x.tanh().square()).mean();
    for f in [&plain as &dyn Fn() -> Tensor, &built_in] {
        let before = live();
        let loss = hooks().run(f);
        assert_near(since(before), 0.0);
        drop(loss);
        x.clear_grad();
        let found = peak(|| hooks().run(f).backward().unwrap());
        assert!(found < 4.1, "{found}");
        let packed = x.grad().unwrap();
        x.clear_grad();
        f().backward().unwrap();
        assert_eq!(packed.at(&[3, 7]), x.grad().unwrap().at(&[3, 7]));
        x.clear_grad();
    }
}

/// The peak bytes for building a graph of `n` ops and walking it, and the time.
fn cost_of(n: usize, graph: fn(&Tensor, usize) -> Tensor) -> (f64, Duration) {
    let x = Tensor::<f32>::from(0.5);
    x.set_stop_gradient(false);
    let run = || graph(&x, n).backward().unwrap();
    let start = Instant::now();
    (peak(run) * TENSOR as f64, start.elapsed())
}

/// Eight times as many ops need eight times as much memory, for any depth of the chain and any number
/// of uses of a leaf. `--nocapture` prints the figures, and the time, which is not tested.
#[test]
fn depth_and_width_cost_memory_in_proportion() {
    alone!();
    let deep = |x: &Tensor, n: usize| (1..n).fold(x + 1e-9, |y, _| y + 1e-9);
    let kept = |x: &Tensor, n: usize| (1..n).fold(x.tanh(), |y, _| y.tanh());
    let wide = |x: &Tensor, n: usize| (1..n).fold(x * 1.0, |y, _| y + x);
    let flat = |x: &Tensor, n: usize| {
        let parts: Vec<Tensor> = (0..n).map(|_| x * 1.0).collect();
        Tensor::stack(&parts, 0).sum()
    };
    let graphs: [(&str, f64, fn(&Tensor, usize) -> Tensor); 4] = [
        ("deep", 300.0, deep),
        ("kept", 400.0, kept),
        ("wide", 300.0, wide),
        ("flat", 1200.0, flat),
    ];
    // The thread's caches are dropped with it, before the next measurement.
    let cost_of = |n, graph| thread::spawn(move || cost_of(n, graph)).join().unwrap();
    for (name, most, graph) in graphs {
        let (few, quick) = cost_of(20_000, graph);
        let (many, slow) = cost_of(160_000, graph);
        let ratio = many / few;
        assert!((7.0..8.5).contains(&ratio), "{name}: {few} bytes, then {many}");
        let each = many / 160_000.0;
        let [quick, slow] = [(quick, 20_000), (slow, 160_000)].map(|(time, n)| time.as_nanos() / n);
        eprintln!("{name}: {each:.0} bytes an op; {quick} and {slow} ns, of few and of many");
        assert!(each < most, "{name}: {each} bytes an op");
    }
}

/// Saves its output, and a tensor that is too large for the node; may then fail, on request.
#[py_layer]
impl SmallWithLarge {
    type Saved = (Tensor, Tensor);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor,
        length: usize,
        fails: bool,
    ) -> Result<Tensor, &'static str> {
        let (y, large) = (x * 2.0, Tensor::ones([length]));
        ctx.save_for_backward((&y, &large));
        if fails { Err("on purpose") } else { Ok(y) }
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        let (_, large) = ctx.saved_tensor();
        dy * large.max() * 2.0
    }
}

#[test]
fn ops_of_few_numbers_leave_nothing_when_they_are_gone() {
    alone!();
    let x = Tensor::from([0.5, 0.25]);
    x.set_stop_gradient(false);
    let works: [(&str, &dyn Fn()); 5] = [
        ("a chain that is walked", &|| {
            (0..50).fold(Tanh::apply(&x), |y, _| Tanh::apply(&y)).sum().backward().unwrap();
            x.clear_grad();
        }),
        ("one that is not", &|| drop(Tanh::apply(&Tanh::apply(&x)))),
        ("without a gradient", &|| drop(Tanh::apply(&x.detach()))),
        ("a large tensor beside", &|| {
            SmallWithLarge::apply(&x, 40, false).unwrap().sum().backward().unwrap();
            x.clear_grad();
        }),
        ("an error", &|| drop(SmallWithLarge::apply(&x, 2, true))),
    ];
    for (name, work) in works {
        (0..300).for_each(|_| work());
        let before = MEMORY.current_usage();
        (0..2000).for_each(|_| work());
        let left = MEMORY.current_usage().saturating_sub(before);
        // A node and a tensor in each round would be 600,000.
        assert!(left < 40_000, "{name}: {left} bytes");
    }
}

#[test]
fn a_large_tensor_that_a_small_op_saved_goes_as_soon_as_it_is_used() {
    alone!();
    let x = Tensor::from([0.5, 0.25]);
    x.set_stop_gradient(false);
    let before = live();
    let y = SmallWithLarge::apply(&x, N, false).unwrap();
    assert_near(since(before), 1.0);
    y.sum().backward().unwrap();
    assert_near(since(before), 0.0);
    drop(y);
}

/// A thread caches the memory of some nodes, but of a limited number.
#[test]
fn the_nodes_that_a_thread_keeps_are_bounded() {
    alone!();
    let build = |n: usize| {
        let x = Tensor::<f64>::from([0.5, 0.25]);
        x.set_stop_gradient(false);
        let y = (0..n).fold(&x * 1.0, |y, _| y * &x);
        y.sum().backward().unwrap();
    };
    thread::spawn(move || {
        build(1000);
        let before = MEMORY.current_usage();
        // A second run takes from the allocator only the list of nodes to visit.
        let second = crate::measured::peak(|| build(1000));
        assert!(second < 40_000, "{second} bytes");
        build(400_000);
        let kept = MEMORY.current_usage().saturating_sub(before);
        assert!(kept < 20 << 20, "{kept} bytes");
        empty_buffer_pool();
        assert!(MEMORY.current_usage() < before, "nodes are given back");
    })
    .join()
    .unwrap();
}

/// Adds a row to all rows: the gradient of the row is a sum over them.
#[py_layer(elementwise)]
impl AddRow {
    fn forward<L: Lane>(x: Real<L>, row: Real<L>) -> Real<L> {
        x + row
    }
}

/// Buffers from users, or directly from the allocator, are freed: no op would take them out of the
/// pool again.
#[test]
fn only_buffers_that_came_from_the_pool_go_back_to_it() {
    alone!();
    let program = Program::new();
    let fed = program.data("x", [-1], DType::Float32).unwrap();
    let doubled = fed.exp().unwrap();
    let executor = Executor::new();
    let row_of = |n: usize| {
        let (x, row) = (Tensor::<f32>::ones([3, n]), Tensor::<f32>::ones([n]));
        row.set_stop_gradient(false);
        AddRow::apply(&x, &row).sum().backward().unwrap();
    };
    let ways: [(&str, &dyn Fn(usize)); 12] = [
        ("Vec of f32", &|n| drop(Tensor::from(vec![0.5_f32; n]))),
        ("Vec of f64", &|n| drop(Tensor::from(vec![0.5_f64; n]))),
        ("Vec of i32", &|n| drop(Tensor::from(vec![5_i32; n]))),
        ("Vec of i64", &|n| drop(Tensor::from(vec![5_i64; n]))),
        ("Vec of u8", &|n| drop(Tensor::from(vec![5_u8; n]))),
        ("Vec of bool", &|n| drop(Tensor::from(vec![true; n]))),
        ("from_vec", &|n| drop(Tensor::from_vec([n, 1], vec![0.5_f32; n]).unwrap())),
        ("array", &|n| drop(Tensor::from(Array1::from_elem(n, 0.5_f32)))),
        ("part of an array", &|n| {
            drop(Tensor::from(Array1::from_elem(n + 1, 0.5_f32).slice_move(s![1..])));
        }),
        ("op over it", &|n| drop((Tensor::from(vec![0.5_f32; n]) * 2.0 + 1.0).exp())),
        ("gradient of a formula's row", &row_of),
        ("fed to a program", &|n| {
            let x = Tensor::from(vec![0.5_f32; n]);
            drop(executor.run(&program, &[("x", &x)], &[&doubled]).unwrap());
        }),
    ];
    for (name, way) in ways {
        for n in [10_000, 100_000] {
            (0..20).for_each(|_| way(n));
            let before = buffer_pool_bytes();
            (0..50).for_each(|_| way(n));
            assert_eq!(buffer_pool_bytes(), before, "{name}, {n} elements");
        }
    }
}
