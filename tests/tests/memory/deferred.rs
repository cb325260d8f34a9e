//! Cheap ops of large tensors are deferred until the result is read. That must not be observable: a
//! program on large tensors gives bit-identical results to one on small pieces of them, where nothing
//! is deferred.

use std::sync::Barrier;
use std::thread;

use crate::measured::alone;
use autograd_core::nn::parameter;
use autograd_core::prelude::*;
use autograd_core::{Float, detect_anomaly, grad, with_num_threads};
use proptest::prelude::*;

/// Elements of a large tensor: some blocks and a rest.
const N: usize = 20_001;
/// Elements of a piece.
const FEW: usize = 1000;

/// An op on earlier tensors, by position from the last one.
#[derive(Clone, Debug)]
struct Op {
    kind: u8,
    operands: [usize; 2],
    /// Whether the operands are passed by value.
    given: [bool; 2],
    scalar: f64,
}

fn op() -> impl Strategy<Value = Op> {
    let scalar = prop_oneof![Just(0.0), Just(-1.0), Just(1.0), -2.0..2.0, Just(f64::INFINITY)];
    (0..31_u8, [0..4_usize, 0..4], any::<[bool; 2]>(), scalar)
        .prop_map(|(kind, operands, given, scalar)| Op { kind, operands, given, scalar })
}

/// Passes an operand by value or by reference.
macro_rules! with {
    ($given:expr, $x:ident, |$y:ident| $body:expr) => {
        if $given {
            let $y = $x;
            $body
        } else {
            let $y = &$x;
            $body
        }
    };
}

fn apply<T: Float>(op: &Op, all: &mut Vec<Tensor<T>>, leaf: &Tensor<T>) {
    let place = |k: usize, len: usize| len - 1 - op.operands[k] % len;
    let mut take = |k: usize| {
        let at = place(k, all.len());
        if op.given[k] && all.len() > 2 { all.remove(at) } else { all[at].clone() }
    };
    let s = T::from_f64(op.scalar);
    let x = take(0);
    let y = match op.kind {
        0 => with!(op.given[0], x, |x| x + s),
        1 => with!(op.given[0], x, |x| x - s),
        2 => with!(op.given[0], x, |x| x * s),
        3 => with!(op.given[0], x, |x| x / s),
        4 => with!(op.given[0], x, |x| -x),
        5 => x.maximum(s),
        6 => x.minimum(s),
        7..=9 => x.relu(),
        10..=12 => x.square(),
        13 => x.tanh(),
        14 => x.abs(),
        15 => x.detach() * s,
        16 => {
            // A read in between.
            assert!(!x.to_vec().is_empty());
            x
        }
        17..=20 => {
            // One number, broadcast.
            let many = Tensor::from(s).broadcast_to(x.shape());
            match op.kind {
                17 => with!(op.given[0], x, |x| many - x),
                18 => with!(op.given[0], x, |x| x - many),
                19 => with!(op.given[0], x, |x| many / x),
                _ => with!(op.given[0], x, |x| &many * x),
            }
        }
        // With a leaf, which the graph holds.
        25 => with!(op.given[0], x, |x| x + leaf),
        26 => with!(op.given[0], x, |x| leaf - x),
        27 => with!(op.given[0], x, |x| leaf * x),
        28 => with!(op.given[0], x, |x| leaf / x),
        29 => x.maximum(leaf),
        30 => leaf.minimum(x),
        kind => {
            let z = take(1);
            match kind {
                21 => with!(op.given[0], x, |x| with!(op.given[1], z, |z| x + z)),
                22 => with!(op.given[0], x, |x| with!(op.given[1], z, |z| x - z)),
                23 => with!(op.given[0], x, |x| with!(op.given[1], z, |z| x * z)),
                _ => with!(op.given[0], x, |x| with!(op.given[1], z, |z| x / z)),
            }
        }
    };
    all.push(y);
}

/// Runs the ops on `x` and `w`: returns all remaining results, and the gradients of `x` and `w`, for a
/// seed or, without one, for the sum.
fn run<T: Float>(ops: &[Op], [x, w]: [&[f64]; 2], seed: Option<&[f64]>) -> Vec<Vec<f64>> {
    let tensor = |data: &[f64]| {
        Tensor::<T>::from(data.iter().map(|&value| T::from_f64(value)).collect::<Vec<_>>())
    };
    let (x, w) = (tensor(x), tensor(w));
    x.set_stop_gradient(false);
    w.set_stop_gradient(false);
    let mut all = vec![x.clone(), &w * T::from_f64(0.5)];
    ops.iter().for_each(|op| apply(op, &mut all, &w));
    let y = all.last().cloned().unwrap() + &x * T::from_f64(2.0) - &w;
    match seed {
        Some(seed) => y.backward_with(&tensor(seed)).unwrap(),
        None => y.sum().backward().unwrap(),
    }
    all.push(y);
    all.extend([&x, &w].map(|leaf| leaf.grad().unwrap()));
    let numbers = |x: Tensor<T>| x.to_vec().into_iter().map(T::into_f64).collect();
    all.into_iter().map(numbers).collect()
}

fn specials(i: usize) -> f64 {
    match i % 97 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 => f64::NAN,
        5 => 1e-310,
        6 => -1e-40,
        7 => 3e38,
        _ => ((i * 7919) % 4001) as f64 / 1000.0 - 2.0,
    }
}

fn compare<T: Float>(ops: &[Op], seeded: bool) {
    let x: Vec<f64> = (0..N).map(specials).collect();
    let w: Vec<f64> = (0..N).map(|i| specials(i / 97 + 8 * i)).collect();
    let seed: Vec<f64> = (0..N).map(|i| specials(8 + i * 31)).collect();
    let large = run::<T>(ops, [&x, &w], seeded.then_some(&seed[..]));
    let mut pieces = vec![Vec::new(); large.len()];
    for start in (0..N).step_by(FEW) {
        let part = start..N.min(start + FEW);
        let seed = seeded.then_some(&seed[part.clone()]);
        let found = run::<T>(ops, [&x[part.clone()], &w[part.clone()]], seed);
        pieces.iter_mut().zip(found).for_each(|(all, part)| all.extend(part));
    }
    for (k, (large, pieces)) in large.iter().zip(&pieces).enumerate() {
        for (i, (a, b)) in large.iter().zip(pieces).enumerate() {
            let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(same, "tensor {k} of {}, element {i}: {a:e} large, {b:e} small", large.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn large_tensors_give_what_small_ones_do(
        ops in prop::collection::vec(op(), 1..14),
        seeded: bool,
        double: bool,
    ) {
        match double {
            true => compare::<f64>(&ops, seeded),
            false => compare::<f32>(&ops, seeded),
        }
    }
}

/// `n` numbers, all exactly representable.
fn counted(n: usize) -> Tensor {
    Tensor::from((0..n).map(|i| (i % 1001) as f32 - 500.0).collect::<Vec<_>>())
}

#[test]
fn sums_are_those_of_numbers_in_memory() {
    for n in [16_384, 20_001, 65_536, 200_003, 1_000_001] {
        let x = Tensor::from((0..n).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>());
        for threads in [1, 3] {
            with_num_threads(threads, || {
                let deferred = || (&x * 1.5 - 0.25).square();
                let made = Tensor::from(deferred().to_vec());
                assert_eq!(deferred().sum().item().to_bits(), made.sum().item().to_bits());
                assert_eq!(deferred().mean().item().to_bits(), made.mean().item().to_bits());
                assert_eq!(deferred().max().item(), made.max().item());
            });
        }
    }
}

#[test]
fn operands_may_change_meanwhile() {
    let mut x = counted(N);
    let (before, doubled) = (x.to_vec(), &x * 2.0);
    x += 1.0;
    x.detach().fill(7.0).unwrap();
    assert_eq!(doubled.to_vec(), before.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(x.to_vec(), [7.0; N]);
    // The result too; its other handle sees the change.
    let mut y = &x * 2.0;
    let other = y.clone();
    y += &x;
    assert_eq!(other.to_vec(), [21.0; N]);
    // A tensor that a deferred op was to read.
    let (x, mut a) = (counted(N), counted(N));
    x.set_stop_gradient(false);
    let squared = &x * &a + &x;
    a += 1.0;
    a.detach().fill(7.0).unwrap();
    assert_eq!(squared.to_vec(), before.iter().map(|x| x * x + x).collect::<Vec<_>>());
}

#[test]
fn views_show_deferred_elements() {
    let x = counted(200 * 120).reshape([200, 120]);
    let y = (&x + 1.0).relu();
    let expected = |i: usize, j: usize| (((i * 120 + j) % 1001) as f32 - 499.0).max(0.0);
    assert_eq!(y.transpose().at(&[7, 9]), expected(9, 7));
    assert_eq!((&x + 1.0).relu().narrow(1, 5, 4).at(&[50, 2]), expected(50, 7));
    assert_eq!((&x + 1.0).relu().reshape([24_000]).at(&[999]), expected(8, 39));
    let row = Tensor::from(vec![10.0_f32; 120]);
    assert_eq!(((&x + 1.0).relu() + &row).at(&[99, 1]), expected(99, 1) + 10.0);
    assert_eq!((&row - (&x + 1.0).relu()).at(&[99, 1]), 10.0 - expected(99, 1));
    // In the buffer of an operand that is not shared.
    let own = || x.reshape([120, 200]).transpose() * &row;
    let two = own().to_vec()[2];
    assert_eq!(((own() * 2.0 + 1.0) + &row).to_vec()[2], two * 2.0 + 1.0 + 10.0);
    let product = (&x * 0.5).matmul(&(x.transpose() * 2.0));
    assert_eq!(product.at(&[3, 4]), x.matmul(&x.transpose()).at(&[3, 4]));
}

#[test]
fn threads_read_one_result() {
    for _ in 0..50 {
        let x = counted(40_000);
        let y = (&x * 3.0 + 1.0).square();
        drop(x);
        let start = Barrier::new(4);
        let read = |k: usize| {
            start.wait();
            match k {
                0 => y.to_vec()[77],
                1 => (&y + &y).at(&[77]) / 2.0,
                2 => (&y - 1.0).at(&[77]) + 1.0,
                _ => y.sqrt().at(&[77]).powi(2),
            }
        };
        let found: Vec<f32> = thread::scope(|scope| {
            let threads = [0, 1, 2, 3].map(|k| scope.spawn(move || read(k)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let expected = ((77.0 - 500.0) * 3.0 + 1.0_f32).powi(2);
        assert!(found.iter().all(|found| (found - expected).abs() <= 0.25), "{found:?}");
    }
}

/// Bytes of a tensor of the tests below.
const TENSOR: usize = 4 << 20;

fn large() -> Tensor {
    Tensor::<f32>::full([TENSOR / 4], 0.5)
}

/// The peak of tensors held, in addition to those held before.
fn tensors_at_peak(f: impl FnOnce()) -> f64 {
    crate::measured::peak(f) as f64 / TENSOR as f64
}

#[test]
fn a_chain_of_cheap_ops_needs_no_memory() {
    alone!();
    let x = large();
    let held = tensors_at_peak(|| {
        let y = ((&x * 2.0 + 1.0).relu() * 3.0).square();
        assert_eq!(y.sum().item(), (TENSOR / 4) as f32 * 36.0);
    });
    assert!(held < 0.1, "{held:.2} tensors for a sum");
    let held = tensors_at_peak(|| {
        let y = (&x * 2.0 + 1.0).relu() * 3.0;
        drop(x);
        // In the buffer of its operand.
        assert_eq!(y.to_vec().len(), TENSOR / 4);
    });
    assert!(held < 1.1, "{held:.2} tensors for a copy of the result");
}

#[test]
fn computed_elements_drop_their_source() {
    alone!();
    let y = {
        let x = large();
        let kept = x.clone();
        let y = &x + 1.0;
        let first = y.at(&[0]);
        drop(kept);
        assert_eq!(first, 1.5);
        y
    };
    let without = {
        let before = crate::measured::MEMORY.current_usage() - autograd_core::buffer_pool_bytes();
        drop(y);
        before - (crate::measured::MEMORY.current_usage() - autograd_core::buffer_pool_bytes())
    };
    let tensors = without as f64 / TENSOR as f64;
    assert!((tensors - 1.0).abs() < 0.1, "{tensors:.2} tensors were held");
}

#[test]
fn operators_of_two_tensors_are_computed_at_once() {
    alone!();
    let [a, b, c] = [0; 3].map(|_| large());
    [&a, &b, &c].into_iter().for_each(|leaf| leaf.set_stop_gradient(false));
    let mut sum = None;
    // The input of `relu`, from which its output is computed on reading, and the product.
    let held = tensors_at_peak(|| sum = Some(((&a * &b + &c).relu() * &c).sum()));
    assert!(held < 2.1, "{held:.2} tensors for a sum");
    let held = tensors_at_peak(|| sum.take().unwrap().backward().unwrap());
    // Three gradients, and the output of `relu` beside its gradient, which is in the input's buffer.
    assert!(held < 3.3, "{held:.2} tensors for the gradients");

    // Operands are dropped at once, not when the result is read.
    for recorded in [false, true] {
        let mut sum = large();
        sum.set_stop_gradient(!recorded);
        let held = tensors_at_peak(|| {
            for _ in 0..6 {
                sum = &sum + &large();
            }
        });
        assert!(held < 3.1, "{held:.2} tensors for a sum of six");
    }
}

/// Returns its input.
#[py_layer]
impl Same {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor) -> Tensor {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor) -> Tensor {
        dy.clone()
    }
}

/// Tensors that the result of `f` holds, after everything else that `f` created is dropped.
fn tensors_of_result(f: impl FnOnce() -> Tensor) -> f64 {
    let in_use = || crate::measured::MEMORY.current_usage() - autograd_core::buffer_pool_bytes();
    let y = f();
    let before = in_use();
    drop(y);
    (before - in_use()) as f64 / TENSOR as f64
}

#[test]
fn what_a_result_was_computed_from_goes_with_the_graph() {
    alone!();
    let leaf = || {
        let leaf = large();
        leaf.set_stop_gradient(false);
        leaf
    };
    type Of = fn(&Tensor, &Tensor) -> Tensor;
    let ways: [(&str, Of); 10] = [
        ("read", |x, w| {
            let y = x * w;
            assert_eq!(y.at(&[0]), 0.25);
            y.detach()
        }),
        ("detached", |x, w| (x * w).detach()),
        ("of many", |x, w| ((x * w + w).relu() * w - x).detach()),
        ("detached before", |x, w| (x.detach() * w).detach()),
        ("of activations, after backward", |x, w| {
            let y = (x + 1.0) * (w + 2.0);
            y.sum().backward().unwrap();
            [x, w].into_iter().for_each(Tensor::clear_grad);
            y.detach()
        }),
        ("one more op", |x, w| {
            let y = x * w;
            let _off = no_grad();
            y + 1.0
        }),
        ("one more function", |x, w| {
            let y = x * w;
            let _off = no_grad();
            y.square()
        }),
        ("as a parameter", |x, w| parameter(x * w)),
        ("returned by a layer that is not recorded", |x, w| {
            let y = x * w;
            let _off = no_grad();
            Same::apply(&y)
        }),
        ("another shape", |x, w| {
            let y = x * w;
            let _off = no_grad();
            y.reshape([2, TENSOR / 8])
        }),
    ];
    for (way, of) in ways {
        let held = tensors_of_result(|| of(&leaf(), &leaf()));
        assert!((held - 1.0).abs() < 0.1, "{way}: {held:.2} tensors are held");
    }
    // While the graph exists it holds the leaves, and the activations that the rules need.
    let (x, w) = (leaf(), leaf());
    let held = tensors_of_result(|| {
        let y = (&x + 1.0) * (&w + 2.0);
        y.sum().backward().unwrap();
        [&x, &w].into_iter().for_each(Tensor::clear_grad);
        y
    });
    assert!((held - 1.0).abs() < 0.1, "{held:.2} tensors are held after backward");
}

#[test]
fn gradients_are_computed_when_backward_ends() {
    alone!();
    let x = large();
    x.set_stop_gradient(false);
    ((&x * 2.0).relu() * 3.0).sum().backward().unwrap();
    let gradient = x.grad().unwrap();
    // Reading it needs one copy and nothing else.
    let held = tensors_at_peak(|| assert_eq!(gradient.to_vec()[5], 6.0));
    assert!(held < 1.1, "{held:.2} tensors to read a gradient");
    let y = (&x * 2.0).relu() * 3.0;
    let gradients = grad(&[&y.sum()], &[&x]).unwrap();
    let held = tensors_at_peak(|| assert_eq!(gradients[0].to_vec()[5], 6.0));
    assert!(held < 1.1, "{held:.2} tensors to read a gradient");
}

#[test]
fn a_nan_is_found_in_the_op_that_made_it() {
    let x = counted(N);
    x.set_stop_gradient(false);
    let scope = detect_anomaly();
    let y = (&x * 0.0 * f32::INFINITY).relu() + 1.0;
    let error = scope.check().unwrap_err().to_string();
    assert!(error.contains("mul") && error.contains("NaN"), "{error}");
    drop((y, scope));
}
