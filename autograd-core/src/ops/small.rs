//! Ops of tensors of a few numbers, which stand inline unless they change in place: `+ - * /` of two of one
//! shape, or of one and a number, and functions of one. They compute in place without a pass, and are recorded
//! as a [`Small`], which backward reads where it stands.

use std::marker::PhantomData;
use std::sync::OnceLock;

use super::binary::{Binary, gradients, scalar_gradient};
use super::elementwise::{Handle, Op, gradient};
use super::{Caller, Float, Input};
use crate::array::shape::same;
use crate::error::Result;
use crate::formula::{Formula, run_over};
use crate::graph::{
    AnyTensor, Blank, Edge, Kept, Lost, Marks, Maybe, NodeRef, Pull, Small, SmallOp, Tensor,
    is_grad_enabled, is_watched, typed,
};

/// Whether an op is of this kind. Observers see the nodes of other ones only.
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
    if !a.is_small() || !b.is_small() || !is_known(op) || !same(a.shape(), b.shape()) {
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
    let versions = [version(a, saves[0]), version(b, saves[1])];
    if versions[0] != 0 && versions[1] != 0 {
        return Err([left, right]);
    }
    let level = |x: &Tensor<T>, wants| if wants { x.level_above() } else { 0 };
    let level = level(a, wants[0]).max(level(b, wants[1]));
    let mut node = Blank::new(level, caller);
    let small = node.small();
    small.op = &Rules::<T>::PAIRS[op as usize];
    if saves != [false, false] {
        let tensors = [Maybe::of(a, saves[0]), Maybe::of(b, saves[1])];
        small.put_kept(T::keep(tensors, versions, Marks::default()));
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
    if !x.tensor().is_small() || !is_known(op) || (op, swapped) == (Binary::Div, true) {
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
pub(super) fn unary<'a, T: Float>(
    op: &'static dyn Op<T>,
    mut x: Input<'a, T>,
    caller: Caller,
) -> Result<Tensor<T>, Input<'a, T>> {
    if !x.tensor().is_small() || is_watched() {
        return Err(x);
    }
    let Some(small) = op.small() else { return Err(x) };
    if !x.tensor().is_recorded() {
        let lost = Lost::of(small.name, caller, x.tensor());
        return Ok(formula_of(small.forward, x).with_lost(lost));
    }
    let keeps = small.keeps;
    let mut node = Blank::new(x.tensor().level_above(), caller);
    let place = node.small();
    place.op = small.thin();
    let input = Maybe::of(x.tensor(), keeps[0]);
    let versions = [version(x.tensor(), keeps[0]), 0];
    place.put_edge(0, edge(&mut x, true, keeps[0]));
    let mut y = formula_of(small.forward, x);
    if keeps != [false, false] {
        // The output's own tensor holds the node.
        let output = Maybe::from(if keeps[1] { y.small_copy() } else { None });
        place.put_kept(T::keep([input, output], versions, Marks::default()));
    }
    y.attach(node.done(), 0);
    Ok(y)
}

/// Over the last operand of a formula, or the only one.
#[inline(always)]
fn run_here<T: Float>(
    formula: &dyn Formula<T>,
    before: Option<&T::Inline>,
    last: &mut T::Inline,
    shape: &[usize],
) {
    // Beside it: a copy to read from would be written in narrow pieces and at once read in wide ones.
    let mut out = T::INLINE;
    if formula.run_inline(before, last, &mut out) {
        return run_over(formula, shape.iter().product(), before.map(AsRef::as_ref), last.as_mut());
    }
    *last = out;
}

/// A formula of one tensor, in its own place if it is a temporary.
#[inline(always)]
fn formula_of<T: Float>(formula: &dyn Formula<T>, x: Input<'_, T>) -> Tensor<T> {
    if x.is_temporary() {
        return over(x, None, |x, shape| run_here(formula, None, x, shape));
    }
    // Not in a copy: what has just been written in narrow pieces is not there yet for wide ones.
    let (x, mut now) = (x.tensor(), None);
    let from = numbers(x, &mut now);
    x.small_like().rewritten(None, |to, shape| {
        if formula.run_inline(None, from, to) {
            *to = *from;
            run_over(formula, shape.iter().product(), None, to.as_mut());
        }
    })
}

/// A function of one small tensor: a built-in one, or a user's formula.
pub(crate) struct SmallUnary<T: Float> {
    op: &'static dyn Op<T>,
    name: &'static str,
    /// Whether its rule reads its input, and its output.
    keeps: [bool; 2],
    forward: &'static dyn Formula<T>,
    backward: &'static dyn Formula<T>,
    itself: OnceLock<&'static dyn SmallOp>,
}

impl<T: Float> SmallUnary<T> {
    /// That of an op of one tensor, with its compiled backward.
    pub(super) fn of(op: &'static dyn Op<T>, backward: &'static dyn Formula<T>) -> Self {
        let info = op.info();
        let keeps = [!info.keeps_reals.is_empty(), !info.keeps_outputs.is_empty()];
        let itself = OnceLock::new();
        Self { op, name: info.name, keeps, forward: op.forward(), backward, itself }
    }

    /// As nodes hold it.
    #[inline]
    fn thin(&'static self) -> &'static &'static dyn SmallOp {
        self.itself.get_or_init(|| self)
    }
}

impl<T: Float> SmallOp for SmallUnary<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn inputs(&self) -> usize {
        1
    }

    fn pull<'g>(&self, small: &'g Small, dy: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let dy = typed(dy);
        let [x, y] = T::kept(&small.kept).each_ref().map(Maybe::get);
        let dx = if is_grad_enabled() {
            let saved = match (x, y) {
                (Some(x), _) => Some(Input::Ref(x)),
                (_, y) => y.map(|y| Input::Own(y.clone().attached(pull.node.clone(), 0))),
            };
            gradient(&Handle::Static(self.op), dy, saved)
        } else {
            self.in_place(x.or(y), dy)
        };
        pull.sink.deliver(&small.edges[0], T::wrap(dx))
    }
}

impl<T: Float> SmallUnary<T> {
    /// `dx` from what the rule reads and `dy`, which is written over if nobody else holds it.
    #[inline(always)]
    fn in_place(&self, saved: Option<&Tensor<T>>, dy: Tensor<T>) -> Tensor<T> {
        let mut now = None;
        let from = saved.map(|saved| saved.small_data(&mut now));
        if matches!(from, Some(None)) || dy.inline().is_none() {
            return gradient(&Handle::Static(self.op), dy, saved.map(Input::Ref));
        }
        over(Input::Own(dy), None, |dy, shape| run_here(self.backward, from.flatten(), dy, shape))
    }
}

/// An op as a small one of each type, made when it is asked for first.
#[derive(Default)]
pub(crate) struct SmallUnaries(
    OnceLock<Option<SmallUnary<f32>>>,
    OnceLock<Option<SmallUnary<f64>>>,
);

impl SmallUnaries {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new(), OnceLock::new())
    }
}

/// The element types that small ops have.
pub(crate) trait OfSmall: Sized {
    fn found(all: &SmallUnaries) -> &OnceLock<Option<SmallUnary<Self>>>
    where
        Self: Float;
}

impl OfSmall for f32 {
    fn found(all: &SmallUnaries) -> &OnceLock<Option<SmallUnary<f32>>> {
        &all.0
    }
}

impl OfSmall for f64 {
    fn found(all: &SmallUnaries) -> &OnceLock<Option<SmallUnary<f64>>> {
        &all.1
    }
}

/// As [`Input::edge`], without an observer.
#[inline(always)]
fn edge<T: Float>(operand: &mut Input<'_, T>, wants: bool, kept: bool) -> Edge {
    match operand {
        operand if !wants => Edge::None(operand.tensor().unseen()),
        Input::Own(x) if !kept => x.take_edge(),
        operand => operand.tensor().edge(),
    }
}

/// In a temporary's own place, or in a copy of the left operand.
// Not a call: its arguments would be more than registers take.
#[inline(always)]
fn pair_of<T: Float>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    node: Option<NodeRef>,
) -> Tensor<T> {
    let mut now = None;
    if right.is_temporary() && !left.is_temporary() {
        let run = |x: &mut _, _: &[_]| apply::<T>(op, true, x, numbers(left.tensor(), &mut now));
        return over(right, node, run);
    }
    over(left, node, |x, _| apply::<T>(op, false, x, numbers(right.tensor(), &mut now)))
}

/// In an operand's own place, if it is a temporary, or in a copy.
#[inline(always)]
fn over<T: Float>(
    x: Input<'_, T>,
    node: Option<NodeRef>,
    run: impl FnOnce(&mut T::Inline, &[usize]),
) -> Tensor<T> {
    let copy = |x: &Tensor<T>| x.small_copy().unwrap_or_else(|| not_small());
    let place = match x {
        Input::Ref(x) => copy(x),
        Input::Own(x) if x.is_temporary() => x,
        Input::Own(x) => copy(&x),
    };
    place.rewritten(node, run)
}

#[inline(always)]
fn numbers<'a, T: Float>(x: &'a Tensor<T>, now: &'a mut Option<T::Inline>) -> &'a T::Inline {
    x.small_data(now).unwrap_or_else(|| not_small())
}

/// How often an input was changed in place, if it is kept.
#[inline(always)]
fn version<T: Float>(x: &Tensor<T>, kept: bool) -> u32 {
    if kept { x.version() } else { 0 }
}

#[cold]
fn not_small() -> ! {
    unreachable!("the operands were found to be of a few numbers")
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

/// The four, in their order in [`Binary`].
const FOUR: [Binary; 4] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div];

/// One of the [`FOUR`], of two tensors.
struct PairOp<T, const OP: usize>(PhantomData<fn() -> T>);

/// The same of a tensor and a number, or, if it is swapped, of a number and a tensor.
struct NumberOp<T, const OP: usize, const SWAPPED: bool>(PhantomData<fn() -> T>);

struct Rules<T>(PhantomData<T>);

impl<T: Float> Rules<T> {
    const PAIRS: &[&dyn SmallOp; 4] = &[
        &PairOp::<T, 0>(PhantomData),
        &PairOp::<T, 1>(PhantomData),
        &PairOp::<T, 2>(PhantomData),
        &PairOp::<T, 3>(PhantomData),
    ];
    /// Also by whether the number comes first.
    const NUMBERS: &[[&dyn SmallOp; 2]; 4] = &[
        [&NumberOp::<T, 0, false>(PhantomData), &NumberOp::<T, 0, true>(PhantomData)],
        [&NumberOp::<T, 1, false>(PhantomData), &NumberOp::<T, 1, true>(PhantomData)],
        [&NumberOp::<T, 2, false>(PhantomData), &NumberOp::<T, 2, true>(PhantomData)],
        [&NumberOp::<T, 3, false>(PhantomData), &NumberOp::<T, 3, true>(PhantomData)],
    ];
}

impl<T: Float, const OP: usize> SmallOp for PairOp<T, OP> {
    fn name(&self) -> &'static str {
        FOUR[OP].name()
    }

    fn inputs(&self) -> usize {
        2
    }

    fn shown(&self) -> usize {
        2
    }

    fn pull<'g>(&self, small: &'g Small, dy: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull_pair::<T>(FOUR[OP], small, typed(dy), pull)
    }
}

impl<T: Float, const OP: usize, const SWAPPED: bool> SmallOp for NumberOp<T, OP, SWAPPED> {
    fn name(&self) -> &'static str {
        FOUR[OP].name()
    }

    fn inputs(&self) -> usize {
        1
    }

    fn shown(&self) -> usize {
        1
    }

    fn pull<'g>(&self, small: &'g Small, dy: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull_number::<T>((FOUR[OP], SWAPPED), small, typed(dy), pull)
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
