//! Random graphs with user ops, hooks, kept gradients, marked outputs, lists, checkpoints, detached
//! and unrecorded parts, against a tape of single numbers: slow, but easy to verify. The tape's
//! backward is recorded on the tape too, so the second order repeats the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, GradOptions, backward_each, checkpoint, fuse, grad_with, leaves_of, no_grad,
};
use proptest::prelude::*;

/// The numbers in each tensor.
const N: usize = 3;

/// The op that computed a number; operands are positions on the tape.
#[derive(Clone, Copy)]
enum Op {
    Given,
    Add(usize, usize),
    Mul(usize, usize),
    Scale(usize, f64),
    Sin(usize),
    Cos(usize),
    Tanh(usize),
    /// An op whose backward multiplies by this number, whatever the derivative is.
    Believed(usize, f64),
}

/// The effect of a hook on a complete gradient.
#[derive(Clone, Copy)]
enum Hook {
    Scale(f64),
    Keep,
}

#[derive(Default)]
struct Tape {
    values: Vec<f64>,
    ops: Vec<Op>,
    /// Whether a gradient is wanted.
    wants: Vec<bool>,
    hooks: Vec<Vec<Hook>>,
}

/// The gradients of all numbers as positions on the tape, and the gradients that hooks kept.
type Gradients = (Vec<Option<usize>>, Vec<Option<usize>>);

impl Tape {
    fn put(&mut self, value: f64, op: Op, wants: bool) -> usize {
        self.values.push(value);
        self.ops.push(op);
        self.wants.push(wants);
        self.hooks.push(Vec::new());
        self.values.len() - 1
    }

    fn apply(&mut self, op: Op) -> usize {
        let (v, w) = (&self.values, &self.wants);
        let (value, wants) = match op {
            Op::Given => unreachable!("put on the tape as it is"),
            Op::Add(a, b) => (v[a] + v[b], w[a] || w[b]),
            Op::Mul(a, b) => (v[a] * v[b], w[a] || w[b]),
            Op::Scale(a, by) => (v[a] * by, w[a]),
            Op::Sin(a) => (v[a].sin(), w[a]),
            Op::Cos(a) => (v[a].cos(), w[a]),
            Op::Tanh(a) => (v[a].tanh(), w[a]),
            Op::Believed(a, _) => (v[a] * 3.0, w[a]),
        };
        self.put(value, op, wants)
    }

    /// A number with the same value, but without a history.
    fn cut(&mut self, a: usize) -> usize {
        self.put(self.values[a], Op::Given, false)
    }

    /// From the last number to the first: each passes on its accumulated gradient.
    fn backward(&mut self, root: usize) -> Gradients {
        let mut grads = vec![None; root + 1];
        let mut kept = vec![None; root + 1];
        grads[root] = Some(self.put(1.0, Op::Given, false));
        for i in (0..=root).rev() {
            let Some(mut g) = grads[i] else { continue };
            for hook in self.hooks[i].clone() {
                match hook {
                    Hook::Scale(by) => g = self.apply(Op::Scale(g, by)),
                    Hook::Keep => kept[i] = Some(g),
                }
            }
            grads[i] = Some(g);
            let parts: Vec<(usize, usize)> = match self.ops[i] {
                Op::Given => Vec::new(),
                Op::Add(a, b) => vec![(a, g), (b, g)],
                Op::Mul(a, b) => {
                    vec![(a, self.apply(Op::Mul(g, b))), (b, self.apply(Op::Mul(g, a)))]
                }
                Op::Scale(a, by) | Op::Believed(a, by) => vec![(a, self.apply(Op::Scale(g, by)))],
                Op::Sin(a) => {
                    let slope = self.apply(Op::Cos(a));
                    vec![(a, self.apply(Op::Mul(g, slope)))]
                }
                Op::Cos(a) => {
                    let sine = self.apply(Op::Sin(a));
                    let slope = self.apply(Op::Scale(sine, -1.0));
                    vec![(a, self.apply(Op::Mul(g, slope)))]
                }
                Op::Tanh(a) => {
                    let square = self.apply(Op::Mul(i, i));
                    let less = self.apply(Op::Mul(g, square));
                    let less = self.apply(Op::Scale(less, -1.0));
                    vec![(a, self.apply(Op::Add(g, less)))]
                }
            };
            for (to, part) in parts {
                if self.wants[to] {
                    grads[to] = Some(match grads[to] {
                        Some(sum) => self.apply(Op::Add(sum, part)),
                        None => part,
                    });
                }
            }
        }
        (grads, kept)
    }
}

/// Saves its inputs, and computes only the gradients that are wanted.
#[py_layer]
impl OwnProduct {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let needs = ctx.needs_input_grad();
        Grads { x: needs.x.then(|| dy * w), w: needs.w.then(|| dy * x) }
    }
}

/// Two outputs, one of whose gradients may be absent.
#[py_layer]
impl SineAndDouble {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.save_for_backward(x);
        (x.sin(), x * 2.0)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        dz: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let dx = dy * ctx.saved_tensor().cos();
        match dz {
            Some(dz) => dx + dz * 2.0,
            None => dx,
        }
    }
}

/// An op whose first output has no gradient.
#[py_layer]
impl MarkedAndDouble {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let marked = x * 0.5;
        ctx.mark_non_differentiable(&marked);
        (marked, x * 2.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        marked: &Tensor<f64>,
        dz: &Tensor<f64>,
    ) -> Tensor<f64> {
        dz * 2.0 + marked
    }
}

/// A list, with a flag for each tensor.
#[py_layer]
impl Weighted {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        let parts = xs.iter().enumerate().map(|(i, &x)| x * (0.25 * (i + 1) as f64));
        parts.fold(Tensor::zeros([N]), |sum, part| sum + part)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Option<Tensor<f64>>> {
        let wants = ctx.needs_input_grad().xs.into_iter().enumerate();
        wants.map(|(i, wants)| wants.then(|| dy * (0.25 * (i + 1) as f64))).collect()
    }
}

/// An op whose backward is not its derivative.
#[py_layer]
impl Believed {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 3.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * -0.5
    }
}

/// One step of a program; operands count from the newest value back.
#[derive(Clone, Debug)]
enum Step {
    Add(usize, usize),
    Product(usize, usize),
    Sin(usize),
    Scale(usize, f64),
    /// The sum of all numbers, at each position.
    Spread(usize),
    /// The numbers rotated by one position: views, joined.
    Turn(usize),
    InPlace(usize, usize),
    Fused(usize, usize),
    Detach(usize),
    Unrecorded(usize),
    Checkpoint(usize),
    OwnTanh(usize),
    OwnProduct(usize, usize),
    SineAndDouble(usize),
    MarkedAndDouble(usize),
    Weighted(usize, usize, usize),
    Believed(usize),
    /// Registers a hook on an older value.
    Hook(usize, f64),
    /// An older value keeps its gradient.
    Keep(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || 0_usize..8;
    let pair = || (place(), place());
    let step = prop_oneof![
        2 => pair().prop_map(|(a, b)| Step::Add(a, b)),
        2 => pair().prop_map(|(a, b)| Step::Product(a, b)),
        1 => place().prop_map(Step::Sin),
        1 => (place(), -2.0..2.0).prop_map(|(a, s)| Step::Scale(a, s)),
        1 => place().prop_map(Step::Spread),
        1 => place().prop_map(Step::Turn),
        1 => pair().prop_map(|(a, b)| Step::InPlace(a, b)),
        1 => pair().prop_map(|(a, b)| Step::Fused(a, b)),
        1 => place().prop_map(Step::Detach),
        1 => place().prop_map(Step::Unrecorded),
        1 => place().prop_map(Step::Checkpoint),
        1 => place().prop_map(Step::OwnTanh),
        1 => pair().prop_map(|(a, b)| Step::OwnProduct(a, b)),
        2 => place().prop_map(Step::SineAndDouble),
        1 => place().prop_map(Step::MarkedAndDouble),
        1 => (place(), place(), place()).prop_map(|(a, b, c)| Step::Weighted(a, b, c)),
        1 => place().prop_map(Step::Believed),
        2 => (place(), -2.0..2.0).prop_map(|(a, s)| Step::Hook(a, s)),
        1 => place().prop_map(Step::Keep),
    ];
    proptest::collection::vec(step, 1..50)
}

/// Values of either kind, one or two for each step, and the sum of the last few.
struct Run<V, S> {
    values: Vec<V>,
    loss: S,
}

/// The calls of each hook: the value on which it is registered, and the count.
type Calls = Vec<(usize, Arc<AtomicUsize>)>;

fn on_tensors(steps: &[Step], leaves: &[Tensor<f64>]) -> (Run<Tensor<f64>, Tensor<f64>>, Calls) {
    let mut values = leaves.to_vec();
    let mut calls = Calls::new();
    for step in steps {
        let place = |i: usize| values.len() - 1 - i % values.len();
        let at = |i: usize| &values[place(i)];
        let next = match *step {
            Step::Add(a, b) => at(a) + at(b),
            Step::Product(a, b) => (at(a) * at(b)).tanh(),
            Step::Sin(a) => at(a).sin(),
            Step::Scale(a, s) => at(a) * s,
            Step::Spread(a) => at(a).sum().broadcast_to([N]) * 0.5,
            Step::Turn(a) => {
                Tensor::concat(&[&at(a).narrow(0, 1, N - 1), &at(a).narrow(0, 0, 1)], 0)
            }
            Step::InPlace(a, b) => {
                let mut y = at(a) * 2.0;
                y += at(b);
                y
            }
            Step::Fused(a, b) => fuse([at(a), at(b)], |[x, y]| x.sin() * y.cos()),
            Step::Detach(a) => at(a).detach(),
            Step::Unrecorded(a) => no_grad().run(|| at(a).sin()),
            Step::Checkpoint(a) => {
                let x = at(a).clone();
                checkpoint(move || x.sin() * x.cos())
            }
            Step::OwnTanh(a) => support::ops::Tanh::apply(at(a)),
            Step::OwnProduct(a, b) => OwnProduct::apply(at(a), at(b)).sin(),
            Step::SineAndDouble(a) => {
                let (y, z) = SineAndDouble::apply(at(a));
                values.push(y);
                z
            }
            Step::MarkedAndDouble(a) => {
                let (y, z) = MarkedAndDouble::apply(at(a));
                values.push(y);
                z
            }
            Step::Weighted(a, b, c) => Weighted::apply(&[at(a), at(b), at(c)]),
            Step::Believed(a) => Believed::apply(at(a)).sin(),
            Step::Hook(a, by) => {
                if !at(a).stop_gradient() {
                    let count = Arc::new(AtomicUsize::new(0));
                    calls.push((place(a), Arc::clone(&count)));
                    let hook = move |dy: &Tensor<f64>| {
                        count.fetch_add(1, Relaxed);
                        Ok(Some(dy * by))
                    };
                    let _ = at(a).register_hook(hook).unwrap();
                }
                continue;
            }
            Step::Keep(a) => {
                if !at(a).stop_gradient() {
                    at(a).retain_grads().unwrap();
                }
                continue;
            }
        };
        values.push(next);
    }
    let last = values.iter().rev().take(3);
    let loss = last.fold(Tensor::from(0.0), |sum, v| sum + v.sin().sum());
    (Run { values, loss }, calls)
}

type Row = [usize; N];

/// The same on the tape. Hooks on the first `leaves` values, the leaves, only if they are to run.
fn on_tape(steps: &[Step], tape: &mut Tape, leaves: &[Row], leaf_hooks: bool) -> Run<Row, usize> {
    let mut values = leaves.to_vec();
    for step in steps {
        let place = |i: usize| values.len() - 1 - i % values.len();
        let at = |i: usize| values[place(i)];
        let mut each = |a: usize, op: fn(usize) -> Op| at(a).map(|x| tape.apply(op(x)));
        let next: Row = match *step {
            Step::Add(a, b) => std::array::from_fn(|i| tape.apply(Op::Add(at(a)[i], at(b)[i]))),
            Step::Product(a, b) => std::array::from_fn(|i| {
                let y = tape.apply(Op::Mul(at(a)[i], at(b)[i]));
                tape.apply(Op::Tanh(y))
            }),
            Step::Sin(a) => each(a, Op::Sin),
            Step::Scale(a, by) => at(a).map(|x| tape.apply(Op::Scale(x, by))),
            Step::Spread(a) => {
                let [x, y, z] = at(a);
                let sum = tape.apply(Op::Add(x, y));
                let sum = tape.apply(Op::Add(sum, z));
                std::array::from_fn(|_| tape.apply(Op::Scale(sum, 0.5)))
            }
            // A separate value: hooks on it are not hooks on its operands.
            Step::Turn(a) => {
                std::array::from_fn(|i| tape.apply(Op::Scale(at(a)[(i + 1) % N], 1.0)))
            }
            Step::InPlace(a, b) => std::array::from_fn(|i| {
                let y = tape.apply(Op::Scale(at(a)[i], 2.0));
                tape.apply(Op::Add(y, at(b)[i]))
            }),
            Step::Fused(a, b) => std::array::from_fn(|i| {
                let (x, y) = (tape.apply(Op::Sin(at(a)[i])), tape.apply(Op::Cos(at(b)[i])));
                tape.apply(Op::Mul(x, y))
            }),
            Step::Detach(a) => at(a).map(|x| tape.cut(x)),
            Step::Unrecorded(a) => at(a).map(|x| {
                let y = tape.apply(Op::Sin(x));
                tape.cut(y)
            }),
            Step::Checkpoint(a) => at(a).map(|x| {
                let (s, c) = (tape.apply(Op::Sin(x)), tape.apply(Op::Cos(x)));
                tape.apply(Op::Mul(s, c))
            }),
            Step::OwnTanh(a) => each(a, Op::Tanh),
            Step::OwnProduct(a, b) => std::array::from_fn(|i| {
                let y = tape.apply(Op::Mul(at(a)[i], at(b)[i]));
                tape.apply(Op::Sin(y))
            }),
            Step::SineAndDouble(a) => {
                let (y, z) = (each(a, Op::Sin), each(a, |x| Op::Scale(x, 2.0)));
                values.push(y);
                z
            }
            Step::MarkedAndDouble(a) => {
                let (half, z) = (each(a, |x| Op::Scale(x, 0.5)), each(a, |x| Op::Scale(x, 2.0)));
                values.push(half.map(|x| tape.cut(x)));
                z
            }
            Step::Weighted(a, b, c) => std::array::from_fn(|i| {
                let [x, y, z] = [(a, 0.25), (b, 0.5), (c, 0.75)]
                    .map(|(a, by)| tape.apply(Op::Scale(at(a)[i], by)));
                let sum = tape.apply(Op::Add(x, y));
                tape.apply(Op::Add(sum, z))
            }),
            Step::Believed(a) => at(a).map(|x| {
                let y = tape.apply(Op::Believed(x, -0.5));
                tape.apply(Op::Sin(y))
            }),
            Step::Hook(a, by) => {
                if place(a) >= leaves.len() || leaf_hooks {
                    at(a).iter().for_each(|&x| tape.hooks[x].push(Hook::Scale(by)));
                }
                continue;
            }
            Step::Keep(a) => {
                // A gradient that is kept twice is kept once.
                for x in at(a) {
                    if !tape.hooks[x].iter().any(|hook| matches!(hook, Hook::Keep)) {
                        tape.hooks[x].push(Hook::Keep);
                    }
                }
                continue;
            }
        };
        values.push(next);
    }
    let mut loss = tape.put(0.0, Op::Given, false);
    for value in values.iter().rev().take(3) {
        for &x in value {
            let y = tape.apply(Op::Sin(x));
            loss = tape.apply(Op::Add(loss, y));
        }
    }
    Run { values, loss }
}

/// Leaves of both kinds: some want no gradient.
fn leaves() -> impl Strategy<Value = Vec<([f64; N], bool)>> {
    let leaf = (proptest::array::uniform3(-1.5..1.5), prop::bool::weighted(0.8));
    proptest::collection::vec(leaf, 1..4)
}

fn tensors(leaves: &[([f64; N], bool)]) -> Vec<Tensor<f64>> {
    let leaf = |&(numbers, wants): &([f64; N], bool)| {
        let x = Tensor::from(numbers);
        x.set_stop_gradient(!wants);
        x
    };
    leaves.iter().map(leaf).collect()
}

fn rows(leaves: &[([f64; N], bool)], tape: &mut Tape) -> Vec<Row> {
    leaves.iter().map(|&(x, wants)| x.map(|x| tape.put(x, Op::Given, wants))).collect()
}

/// Checks that a gradient is present in both, or in neither.
fn agree(
    what: &str,
    found: Option<&Tensor<f64>>,
    tape: &Tape,
    expected: &[Option<usize>],
) -> Result<(), TestCaseError> {
    let there = expected.iter().any(Option::is_some);
    prop_assert_eq!(found.is_some(), there, "{}: whether there is a gradient", what);
    let Some(found) = found else { return Ok(()) };
    for (found, expected) in found.to_vec().into_iter().zip(expected) {
        let expected = expected.map_or(0.0, |place| tape.values[place]);
        let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        prop_assert!(close, "{}: {} by the engine, {} by the tape", what, found, expected);
    }
    Ok(())
}

/// `PROPERTY_CASES=10000` tries more than CI does.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPERTY_CASES").map_or(400, |n| n.parse().expect("a number"));
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn backward_leaves_what_the_tape_finds(steps in steps(), leaves in leaves()) {
        let leaf_tensors = tensors(&leaves);
        let (run, calls) = on_tensors(&steps, &leaf_tensors);
        let mut tape = Tape::default();
        let leaf_rows = rows(&leaves, &mut tape);
        let expected = on_tape(&steps, &mut tape, &leaf_rows, true);
        for (tensor, row) in run.values.iter().zip(&expected.values) {
            prop_assert_eq!(tensor.stop_gradient(), !row.iter().any(|&x| tape.wants[x]));
            for (found, &x) in tensor.to_vec().iter().zip(row) {
                prop_assert!((found - tape.values[x]).abs() <= 1e-9 * found.abs().max(1.0));
            }
        }
        run.loss.backward().unwrap();
        let (grads, kept) = if tape.wants[expected.loss] {
            tape.backward(expected.loss)
        } else {
            (vec![None; expected.loss + 1], vec![None; expected.loss + 1])
        };
        let of = |row: &Row, from: &[Option<usize>]| row.map(|x| from[x]);
        for (i, (tensor, row)) in run.values.iter().zip(&expected.values).enumerate() {
            let from = if tensor.is_leaf() { &grads } else { &kept };
            agree(&format!("value {i}"), tensor.grad().as_ref(), &tape, &of(row, from))?;
        }
        for (value, count) in calls {
            let reached = of(&expected.values[value], &grads).iter().any(Option::is_some);
            prop_assert_eq!(count.load(Relaxed), usize::from(reached), "calls of a hook on {}", value);
        }
    }

    /// The same bits, for leaves and for what keeps its gradient.
    #[test]
    fn backward_each_hands_out_what_backward_writes(steps in steps(), leaves in leaves()) {
        let (written, handed) = (tensors(&leaves), tensors(&leaves));
        let (expected, _) = on_tensors(&steps, &written);
        expected.loss.backward().unwrap();
        let (found, calls) = on_tensors(&steps, &handed);
        let outputs = [found.loss.into()];
        let reached = leaves_of(&outputs);
        let mut grads = vec![None; leaves.len()];
        backward_each(&outputs, &[None], BackwardOptions::new(), &mut |leaf, grad| {
            let at = handed.iter().position(|x| x.id() == leaf.id()).expect("a leaf of the program");
            assert!(reached.iter().any(|x| x.id() == leaf.id()));
            assert!(grads[at].replace(grad.downcast::<f64>().unwrap()).is_none(), "handed out twice");
            Ok(())
        }).unwrap();
        let bits = |x: &Tensor<f64>| x.to_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>();
        for (i, x) in written.iter().enumerate() {
            prop_assert_eq!(grads[i].as_ref().map(bits), x.grad().as_ref().map(bits), "leaf {}", i);
            prop_assert!(handed[i].grad().is_none());
        }
        for (i, (found, expected)) in found.values.iter().zip(&expected.values).enumerate() {
            if !expected.is_leaf() {
                prop_assert_eq!(found.grad().as_ref().map(bits), expected.grad().as_ref().map(bits), "value {}", i);
            }
        }
        prop_assert!(calls.iter().all(|(_, count)| count.load(Relaxed) <= 1));
    }

    #[test]
    fn second_order_is_the_tapes_own(steps in steps(), leaves in leaves()) {
        let leaf_tensors = tensors(&leaves);
        let (run, _) = on_tensors(&steps, &leaf_tensors);
        let mut tape = Tape::default();
        let leaf_rows = rows(&leaves, &mut tape);
        // `grad` does not run hooks of leaves.
        let expected = on_tape(&steps, &mut tape, &leaf_rows, false);
        let wanted: Vec<usize> = (0..leaves.len()).filter(|&i| leaves[i].1).collect();
        if wanted.is_empty() || run.loss.stop_gradient() {
            return Ok(());
        }
        let inputs: Vec<&Tensor<f64>> = wanted.iter().map(|&i| &leaf_tensors[i]).collect();
        let options = || GradOptions::new().create_graph(true).allow_unused(true);
        let first = grad_with(&[&run.loss], &inputs, options()).unwrap();
        let (grads, _) = tape.backward(expected.loss);
        let mut sum = Tensor::from(0.0);
        let mut total = tape.put(0.0, Op::Given, false);
        for (&i, found) in wanted.iter().zip(&first) {
            let row = leaf_rows[i].map(|x| grads[x]);
            agree(&format!("leaf {i}"), found.as_ref(), &tape, &row)?;
            // Weighted, so that nothing cancels.
            let Some(found) = found else { continue };
            sum += (found * Tensor::from([1.0, -0.5, 0.75])).sum();
            for (g, by) in row.into_iter().zip([1.0, -0.5, 0.75]) {
                let part = tape.apply(Op::Scale(g.expect("as the tensor has"), by));
                total = tape.apply(Op::Add(total, part));
            }
        }
        prop_assert_eq!(sum.stop_gradient(), !tape.wants[total]);
        if sum.stop_gradient() {
            return Ok(());
        }
        let second = grad_with(&[&sum], &inputs, options()).unwrap();
        let (grads, _) = tape.backward(total);
        for (&i, found) in wanted.iter().zip(&second) {
            let row = leaf_rows[i].map(|x| grads[x]);
            agree(&format!("leaf {i}, second order"), found.as_ref(), &tape, &row)?;
        }
        prop_assert!(leaf_tensors.iter().all(|x| x.grad().is_none()));
    }
}
