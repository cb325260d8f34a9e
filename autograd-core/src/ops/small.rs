//! Built-in ops of tensors whose numbers stand inline: `+ - * /` of two of one shape, or of one and a
//! number, and functions of one. They compute in place without a pass, and are recorded as a [`Small`],
//! which backward reads where it stands.

use std::marker::PhantomData;

use super::binary::{Binary, gradients, scalar_gradient};
use super::elementwise::gradient;
use super::{Caller, Float, Input, Unary};
use crate::array::shape::same;
use crate::error::Result;
use crate::formula::run_over;
use crate::graph::{
    Blank, Edge, Kept, Lost, Maybe, NodeRef, Pull, PullSmall, Small, SmallOp, Tensor,
    is_grad_enabled, is_watched, typed,
};

/// Whether an op is of this kind. Who looks on sees the nodes of other ones only.
#[inline(always)]
fn is_known(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div) && !is_watched()
}

/// Computes and, where it must be, records; both operands come back where they are not of this kind.
#[inline(always)]
pub(super) fn pair<'a, T: Float>(
    op: Binary,
    mut left: Input<'a, T>,
    mut right: Input<'a, T>,
    caller: Caller,
) -> Result<Tensor<T>, [Input<'a, T>; 2]> {
    let (a, b) = (left.tensor(), right.tensor());
    if a.inline().is_none() || b.inline().is_none() || !is_known(op) || !same(a.shape(), b.shape())
    {
        return Err([left, right]);
    }
    let on = is_grad_enabled();
    let wants = [on && !a.stop_gradient(), on && !b.stop_gradient()];
    if wants == [false, false] {
        let lost = Lost::of_all(op.name(), caller, [a, b]);
        return Ok(pair_of(op, left, right, None).with_lost(lost));
    }
    // The gradient of a divisor is that of a formula.
    if (op, wants[1]) == (Binary::Div, true) {
        return Err([left, right]);
    }
    let saves = op.saves(wants);
    let level = |x: &Tensor<T>, wants| if wants { x.level_above() } else { 0 };
    let level = level(a, wants[0]).max(level(b, wants[1]));
    let mut node = Blank::new(level, caller);
    let small = node.small();
    small.op = &Rules::<T>::PAIRS[op as usize];
    if saves != [false, false] {
        small.put_kept(T::keep([Maybe::of(a, saves[0]), Maybe::of(b, saves[1])]));
    }
    small.put_edge(0, edge(&mut left, wants[0], saves[0]));
    small.put_edge(1, edge(&mut right, wants[1], saves[1]));
    Ok(pair_of(op, left, right, Some(node.done())))
}

/// The same of a tensor and the number `s`, or of `s` and the tensor.
#[inline(always)]
pub(super) fn number<'a, T: Float>(
    op: Binary,
    mut x: Input<'a, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Result<Tensor<T>, Input<'a, T>> {
    // The gradient of a quotient of the number needs the tensor.
    if x.tensor().inline().is_none() || !is_known(op) || (op, swapped) == (Binary::Div, true) {
        return Err(x);
    }
    let mut number = T::INLINE;
    number.as_mut().fill(s);
    if !x.tensor().is_recorded() {
        let lost = Lost::of(op.name(), caller, x.tensor());
        return Ok(over(x, None, |x, _| apply::<T>(op, swapped, x, &number)).with_lost(lost));
    }
    let mut node = Blank::new(x.tensor().level_above(), caller);
    let small = node.small();
    small.op = &Rules::<T>::NUMBERS[op as usize][usize::from(swapped)];
    small.put_kept(Kept::Number(s.into_f64()));
    small.put_edge(0, edge(&mut x, true, false));
    Ok(over(x, Some(node.done()), |x, _| apply::<T>(op, swapped, x, &number)))
}

/// A function of one tensor; it comes back where it is not of this kind.
#[inline(always)]
pub(super) fn unary<T: Float>(
    op: Unary,
    mut x: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>, Input<'_, T>> {
    if x.tensor().inline().is_none() || is_watched() {
        return Err(x);
    }
    let small = op.small::<T>();
    let run = |x: &mut T::Inline, shape: &[usize]| {
        if (small.forward)(x) {
            run_over(op.op().forward(), shape.iter().product(), None, x.as_mut());
        }
    };
    if !x.tensor().is_recorded() {
        let lost = Lost::of(op.name(), caller, x.tensor());
        return Ok(over(x, None, run).with_lost(lost));
    }
    let keeps = small.keeps;
    let mut node = Blank::new(x.tensor().level_above(), caller);
    let place = node.small();
    place.op = &small.op;
    let input = Maybe::of(x.tensor(), keeps[0]);
    place.put_edge(0, edge(&mut x, true, keeps[0]));
    let mut y = over(x, None, run);
    if keeps != [false, false] {
        // The output's own tensor holds the node.
        let output = Maybe::from(if keeps[1] { y.small_copy() } else { None });
        place.put_kept(T::keep([input, output]));
    }
    y.attach(node.done(), 0);
    Ok(y)
}

/// A function of one small tensor.
pub(super) struct SmallUnary<T: Float> {
    pub(super) op: SmallOp,
    /// Whether its rule reads its input, and its output.
    pub(super) keeps: [bool; 2],
    /// Computes it in place; true where it could not: see [`run_inline`](crate::formula::run_inline).
    pub(super) forward: fn(&mut T::Inline) -> bool,
    /// The same of its gradient, from what the rule reads.
    pub(super) backward: fn(Option<&T::Inline>, &mut T::Inline) -> bool,
}

/// As [`Input::edge`], where nobody looks on.
#[inline(always)]
fn edge<T: Float>(operand: &mut Input<'_, T>, wants: bool, kept: bool) -> Edge {
    match operand {
        operand if !wants => Edge::None(operand.tensor().unseen()),
        Input::Own(x) if !kept => x.take_edge(),
        operand => operand.tensor().edge(),
    }
}

/// In a temporary's own place, or in a copy of the left operand.
#[inline]
fn pair_of<T: Float>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    node: Option<NodeRef>,
) -> Tensor<T> {
    if right.is_temporary() && !left.is_temporary() {
        return over(right, node, |x, _| apply::<T>(op, true, x, numbers(left.tensor())));
    }
    over(left, node, |x, _| apply::<T>(op, false, x, numbers(right.tensor())))
}

/// In an operand's own place, if it is a temporary, or in a copy.
#[inline(always)]
fn over<T: Float>(
    x: Input<'_, T>,
    node: Option<NodeRef>,
    run: impl FnOnce(&mut T::Inline, &[usize]),
) -> Tensor<T> {
    let copy = |x: &Tensor<T>| x.small_copy().unwrap_or_else(|| not_inline());
    let place = match x {
        Input::Ref(x) => copy(x),
        Input::Own(x) if x.is_temporary() => x,
        Input::Own(x) => copy(&x),
    };
    place.rewritten(node, run)
}

#[inline(always)]
fn numbers<T: Float>(x: &Tensor<T>) -> &T::Inline {
    x.inline().unwrap_or_else(|| not_inline())
}

#[cold]
fn not_inline() -> ! {
    unreachable!("the operands were found to stand inline")
}

/// Writes over `x`; with the arguments exchanged if `swapped`.
#[inline]
fn apply<T: Float>(op: Binary, swapped: bool, x: &mut T::Inline, y: &T::Inline) {
    let pairs = x.as_mut().iter_mut().zip(y.as_ref());
    match (op, swapped) {
        (Binary::Add, _) => pairs.for_each(|(x, y)| *x = x.plus(*y)),
        (Binary::Sub, false) => pairs.for_each(|(x, y)| *x = x.minus(*y)),
        (Binary::Sub, true) => pairs.for_each(|(x, y)| *x = y.minus(*x)),
        (Binary::Mul, _) => pairs.for_each(|(x, y)| *x = x.times(*y)),
        (_, false) => pairs.for_each(|(x, y)| *x = x.over(*y)),
        (_, true) => pairs.for_each(|(x, y)| *x = y.over(*x)),
    }
}

/// An array of what is made for each of the four, in their order in [`Binary`].
macro_rules! of_each {
    ($op:ident => $make:expr) => {
        [
            of_each!(Add, $op, $make),
            of_each!(Sub, $op, $make),
            of_each!(Mul, $op, $make),
            of_each!(Div, $op, $make),
        ]
    };
    ($known:ident, $op:ident, $make:expr) => {{
        const $op: Binary = Binary::$known;
        $make
    }};
}

struct Rules<T>(PhantomData<T>);

impl<T: Float> Rules<T> {
    const PAIRS: &[SmallOp; 4] = &of_each!(OP => SmallOp {
        name: OP.name(),
        inputs: 2,
        shown: 2,
        pull: |small, grad, pull| pull_pair::<T>(OP, small, typed(grad), pull),
    });
    /// Also by whether the number comes first.
    const NUMBERS: &[[SmallOp; 2]; 4] = &of_each!(OP => [
        Self::number(OP, |small, grad, pull| {
            pull_number::<T>((OP, false), small, typed(grad), pull)
        }),
        Self::number(OP, |small, grad, pull| {
            pull_number::<T>((OP, true), small, typed(grad), pull)
        }),
    ]);

    const fn number(op: Binary, pull: PullSmall) -> SmallOp {
        SmallOp { name: op.name(), inputs: 1, shown: 1, pull }
    }
}

fn pull_pair<'g, T: Float>(
    op: Binary,
    small: &'g Small,
    grad: Tensor<T>,
    pull: &mut Pull<'_, 'g>,
) -> Result<()> {
    let [a, b] = T::kept(&small.kept);
    let [left, right] = &small.edges;
    let wants = [pull.wants(left), pull.wants(right)];
    let [da, db] = gradients(op, || a.there(), || b.there(), grad, wants);
    if let Some(da) = da {
        pull.sink.deliver(left, T::wrap(da))?;
    }
    match db {
        Some(db) => pull.sink.deliver(right, T::wrap(db)),
        None => Ok(()),
    }
}

/// The rule of a function of one tensor.
pub(super) fn pull_unary<'g, T: Float>(
    op: Unary,
    small: &'g Small,
    dy: Tensor<T>,
    pull: &mut Pull<'_, 'g>,
) -> Result<()> {
    let [x, y] = T::kept(&small.kept).each_ref().map(Maybe::get);
    let dx = if is_grad_enabled() {
        let saved = match (x, y) {
            (Some(x), _) => Some(Input::Ref(x)),
            (_, y) => y.map(|y| Input::Own(y.clone().attached(pull.node.clone(), 0))),
        };
        gradient(&op.handle(), dy, saved)
    } else {
        in_place(op, x.or(y), dy)
    };
    pull.sink.deliver(&small.edges[0], T::wrap(dx))
}

/// `dx` from what the rule reads and `dy`, which is written over if nobody else holds it.
#[inline(always)]
fn in_place<T: Float>(op: Unary, saved: Option<&Tensor<T>>, dy: Tensor<T>) -> Tensor<T> {
    let from = saved.map(Tensor::inline);
    if matches!(from, Some(None)) || dy.inline().is_none() {
        return gradient(&op.handle(), dy, saved.map(Input::Ref));
    }
    let from = from.flatten();
    over(Input::Own(dy), None, |dy, shape| {
        if (op.small::<T>().backward)(from, dy)
            && let Some(formula) = op.op::<T>().compiled_backward()
        {
            run_over(formula, shape.iter().product(), from.map(AsRef::as_ref), dy.as_mut());
        }
    })
}

fn pull_number<'g, T: Float>(
    (op, swapped): (Binary, bool),
    small: &'g Small,
    dy: Tensor<T>,
    pull: &mut Pull<'_, 'g>,
) -> Result<()> {
    let Kept::Number(s) = small.kept else { unreachable!("a number was kept for this rule") };
    let kept = || unreachable!("these rules need the number only");
    let dx = scalar_gradient((op, T::from_f64(s), swapped), kept, dy);
    pull.sink.deliver(&small.edges[0], T::wrap(dx))
}
