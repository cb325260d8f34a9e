//! Elementwise functions of two tensors, with broadcasting.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::binary_kernels::{of_integers, of_two};
use super::elementwise::{Handle, gradient, gradients_of, run_formula, run_pass};
use super::formula_ops;
use super::gather::place;
use super::inline_kernels;
use super::table::for_programs;
use super::table::{
    Form, OpDef, Type, arithmetic, broadcast as broadcast_forms, exactly, family, number,
    same_dtype,
};
use super::{Binary, Caller, Float, Input, Numeric, Operand, Unary, add_parts, expect};
use crate::array::elementwise::{convert, convert_zip};
use crate::array::shape::{broadcast, same};
use crate::array::{Shape, Value};
use crate::error::{Error, Result};
use crate::formula;
use crate::graph::{
    AnyTensor, At, Edges, Lost, NodeRef, Op, Plain, Pull, Push, Reader, Saved, SavedState, Slots,
    Tensor, only, typed,
};

impl Binary {
    /// Whether the rules need the left and the right operand, given which of the two want a gradient.
    pub(super) fn saves(self, [left, right]: [bool; 2]) -> [bool; 2] {
        match self {
            Self::Add | Self::Sub => [false, false],
            Self::Mul => [right, left],
            Self::Div => [right, left || right],
            Self::Pow | Self::Maximum | Self::Minimum => [true, true],
        }
    }

    /// As [`Self::saves`], if the other operand is a number, which is on the left if `swapped`.
    fn saves_one(self, number: f64, swapped: bool) -> bool {
        match self {
            Self::Add | Self::Sub | Self::Mul => false,
            Self::Div => swapped,
            Self::Pow => swapped || number != 0.0,
            Self::Maximum | Self::Minimum => true,
        }
    }
}

family! {
    BINARY of Binary::ALL => OpDef {
        family: "binary",
        infer: for_programs(|op, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            arithmetic(Binary::ALL[op.def.index], a)?;
            Ok(vec![Form::new(a.dtype, broadcast_forms(&a.dims, &b.dims)?)])
        }),
        run: |op, values, at| {
            let function = Binary::ALL[op.def.index];
            number!(values, (a, b) => Numeric::binary(function, Input::Own(a), Input::Own(b), at))
        },
        ..OpDef::new("")
    }
}

family! {
    /// The same functions with a number on the right, or on the left if it is swapped.
    SCALAR of Binary::ALL => OpDef {
        family: "scalar",
        attrs: &[("scalar", Type::Number), ("swapped", Type::Flag)],
        show: for_programs(|op| {
            let side = if op.flag(1) { "left" } else { "right" };
            format!("{side}={:?}", op.number(0))
        }),
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let x = arithmetic(Binary::ALL[op.def.index], x)?;
            number(x.dtype, op.number(0))?;
            Ok(vec![x.clone()])
        }),
        run: |op, x, at| {
            let function = Binary::ALL[op.def.index];
            number!(x, x => scalar_of(function, x, (op.number(0), op.flag(1)), at))
        },
        ..OpDef::new("")
    }
}

fn scalar_of<T: Numeric>(
    of: Binary,
    x: Tensor<T>,
    (scalar, swapped): (f64, bool),
    at: Caller,
) -> Result<Tensor<T>> {
    let scalar = T::nearest(scalar);
    match swapped {
        true => check_divisor(of, &x.read())?,
        false => check_divisor(of, &Value::scalar(scalar))?,
    }
    Ok(T::binary_scalar(of, Input::Own(x), scalar, swapped, at))
}

pub(super) fn check_divisor<T: Numeric>(op: Binary, divisor: &Value<T>) -> Result<()> {
    if const { T::DTYPE.is_float() } || op != Binary::Div {
        return Ok(());
    }
    let Some(at) = divisor.to_vec().iter().position(|&x| x == T::ZERO) else { return Ok(()) };
    let index = place(at, divisor.shape());
    let at = if index.is_empty() { String::new() } else { format!(" at {index:?}") };
    Err(Error::value(op.name(), "other", "nonzero for integers", format!("0{at}")))
}

// Inlined: its only caller is one function for each element type, whose stack frame it shares.
#[inline(always)]
pub(super) fn float<T: Float>(
    op: Binary,
    mut left: Input<'_, T>,
    mut right: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let (a, b) = (left.tensor(), right.tensor());
    let wants = [a.is_recorded(), b.is_recorded()];
    if wants == [false, false] {
        let lost = Lost::of_all(op.name(), caller, &[a, b]);
        return Ok(compute(op, left, right)?.with_lost(lost));
    }
    let (saves, rule) = (op.saves(wants), BinaryRules::<T>::PAIRS[op as usize]);
    let node = if a.is_small() && b.is_small() && same(a.shape(), b.shape()) {
        let [a, b] = [saves[0].then(|| a.clone()), saves[1].then(|| b.clone())];
        let edges = || Edges::Two([left.edge(saves[0]), right.edge(saves[1])]);
        let node = NodeRef::with_edges(rule, caller, edges);
        node.saving(SavedState::of([saved(0, a), saved(1, b)], true))
    } else {
        record_large(rule, &mut left, &mut right, saves, caller)
    };
    Ok(compute(op, left, right)?.attached(node, 0))
}

#[inline(never)]
fn record_large<T: Float>(
    rule: &'static dyn Op,
    left: &mut Input<'_, T>,
    right: &mut Input<'_, T>,
    saves: [bool; 2],
    caller: Caller,
) -> NodeRef {
    let (a, b) = (left.tensor(), right.tensor());
    // Gradients of an operand that was broadcast are summed to its shape.
    let shapes = (!same(a.shape(), b.shape()))
        .then(|| Arc::new([a.shape_owned(), b.shape_owned()]) as Plain);
    let mut saved = [saved(0, saves[0].then(|| a.clone())), saved(1, saves[1].then(|| b.clone()))];
    let edges = Edges::Two([left.edge(saves[0]), right.edge(saves[1])]);
    NodeRef::record(rule, edges, SavedState::new(shapes, &mut saved), caller)
}

#[inline(always)]
fn saved<T: Float>(position: usize, kept: Option<Tensor<T>>) -> Saved {
    match kept {
        Some(x) => Saved::kept(position, x),
        None => Saved::Absent,
    }
}

#[inline(always)]
fn compute<T: Float>(op: Binary, left: Input<'_, T>, right: Input<'_, T>) -> Result<Tensor<T>> {
    match inline_kernels::pair(op, left, right) {
        Ok(done) => Ok(done),
        Err([left, right]) => compute_large(op, left, right),
    }
}

#[inline(never)]
fn compute_large<'a, T: Float>(
    op: Binary,
    left: Input<'a, T>,
    right: Input<'a, T>,
) -> Result<Tensor<T>> {
    let (a, b) = (left.tensor(), right.tensor());
    let same = same(a.shape(), b.shape());
    let shape = if same { a.shape_owned() } else { broadcast(op.name(), a.shape(), b.shape())? };
    if let (Binary::Mul, Some(value)) = (op, product_with_ones(&left, &right, &shape)) {
        return Ok(Tensor::new(value));
    }
    if same {
        return Ok(run_formula(of_two(op), Some(left), right));
    }
    Ok(Tensor::new(left.consume(|a| right.consume(|b| run_pass(of_two(op), &shape, &mut [a, b])))))
}

/// Returns the other operand of a product with a broadcast 1, such as the gradient of a sum.
fn product_with_ones<T: Float>(
    left: &Input<'_, T>,
    right: &Input<'_, T>,
    shape: &[usize],
) -> Option<Value<T>> {
    let (a, b) = (left.tensor().read(), right.tensor().read());
    match (a.uniform(), b.uniform()) {
        (Some(one), _) if one == T::ONE && b.shape() == shape => Some(b.into_owned()),
        (_, Some(one)) if one == T::ONE && a.shape() == shape => Some(a.into_owned()),
        _ => None,
    }
}

struct BinaryRules<T>(PhantomData<T>);

struct PairRule<T>(Binary, PhantomData<fn() -> T>);

/// A function of a tensor and a number, or, if swapped, of a number and a tensor.
struct NumberRule<T>(Binary, bool, PhantomData<fn() -> T>);

macro_rules! rules {
    ($($op:ident)*) => {
        const PAIRS: &[&dyn Op] = &[$(&PairRule::<T>(Binary::$op, PhantomData)),*];
        /// The second index says whether the number comes first.
        const NUMBERS: &[[&dyn Op; 2]] = &[$([
            &NumberRule::<T>(Binary::$op, false, PhantomData),
            &NumberRule::<T>(Binary::$op, true, PhantomData),
        ]),*];
    };
}

impl<T: Float> BinaryRules<T> {
    rules! { Add Sub Mul Div Pow Maximum Minimum }
}

impl<T: Float> Op for PairRule<T> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (saved, at) = (pull.read()?, pull.at());
        let operands = [saved.peek(0, at)?, saved.peek(1, at)?];
        let edges = pull.node.edges();
        let wants = [pull.wants(&edges[0]), pull.wants(&edges[1])];
        let shapes = pull.node.attrs::<[Shape; 2]>();
        let [da, db] = pull_pair(self.0, operands, shapes, typed(only(grads)), wants)?;
        if let Some(da) = da {
            pull.sink.deliver(&edges[0], T::wrap(da))?;
        }
        if let Some(db) = db {
            pull.sink.deliver(&edges[1], T::wrap(db))?;
        }
        Ok(())
    }

    /// The rules of the functions that are linear in each operand, and of the quotient.
    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        if self.0.derived::<T>().is_some() && self.0 != Binary::Div {
            return Ok(None);
        }
        let (saved, at) = (push.read()?, push.at());
        let [a, b] = [saved.peek::<T>(0, at)?, saved.peek::<T>(1, at)?];
        let a = || a.unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
        let b = || b.unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
        let [da, db] = [0, 1].map(|i| push.tangents[i].take().map(typed::<T>));
        let dy = match self.0 {
            Binary::Add => add_parts(da, db),
            Binary::Sub => add_parts(da, db.map(|db| -db)),
            Binary::Mul => add_parts(da.map(|da| da * b()), db.map(|db| db * a())),
            Binary::Div => add_parts(da.map(|da| da / b()), db.map(|db| -(db * (a() / b())) / b())),
            Binary::Pow | Binary::Maximum | Binary::Minimum => None,
        };
        let Some(dy) = dy else { return Ok(None) };
        // A single tangent may be that of a broadcast operand.
        let dy = match push.node.attrs::<[Shape; 2]>() {
            Some([a, b]) => {
                let shape = broadcast(self.0.name(), a, b)?;
                if dy.shape() == &shape[..] { dy } else { dy.broadcast_to(&shape[..]) }
            }
            None => dy,
        };
        Ok(Some(Slots::from_elem(Some(T::wrap(dy)), 1)))
    }
}

impl<T: Float> Op for NumberRule<T> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let dx = self.gradient(&pull.read()?, pull.at(), only(grads))?;
        pull.sink.deliver(&pull.node.edges()[0], T::wrap(dx))
    }

    /// The function is elementwise, so `pull` is its own transpose.
    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let Some(dx) = push.tangents[0].take() else { return Ok(None) };
        let dy = self.gradient(&push.read()?, push.at(), dx)?;
        Ok(Some(Slots::from_elem(Some(T::wrap(dy)), 1)))
    }
}

impl<T: Float> NumberRule<T> {
    #[inline]
    fn gradient(&self, saved: &Reader<'_>, at: At<'_>, dy: AnyTensor) -> Result<Tensor<T>> {
        let Some(s) = saved.number(1) else { unreachable!("a number is saved") };
        Ok(scalar_gradient((self.0, T::from_f64(s), self.1), saved.peek(0, at)?, typed(dy)))
    }
}

/// Returns the wanted gradients. The operands are those that [`Binary::saves`] names.
#[inline(always)]
fn pull_pair<T: Float>(
    op: Binary,
    [a, b]: [Option<&Tensor<T>>; 2],
    shapes: Option<&[Shape; 2]>,
    g: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let a = || a.unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
    let b = || b.unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
    // A walk may visit the node without wanting a gradient; then nothing may have been saved either.
    if wants == [false, false] {
        return Ok([None, None]);
    }
    if let Some(derived) = op.derived()
        && (op, wants) != (Binary::Div, [true, false])
    {
        let op = Handle::Static(derived);
        let mut grads =
            gradients_of(op, (&[a(), b()], &[]), &[None], &mut [Some(g)], &wants).into_iter();
        return Ok(std::array::from_fn(|_| grads.next().flatten()));
    }
    let da = |g: Tensor<T>| match op {
        Binary::Mul => g * b(),
        Binary::Div => g / b(),
        _ => g,
    };
    let db = |g: Tensor<T>| match op {
        Binary::Sub => -g,
        Binary::Mul => g * a(),
        _ => g,
    };
    let [da, db] = match wants {
        [true, true] => [Some(da(g.clone())), Some(db(g))],
        [true, false] => [Some(da(g)), None],
        [false, _] => [None, Some(db(g))],
    };
    let Some(shapes) = shapes else { return Ok([da, db]) };
    let [sa, sb] = shapes;
    Ok([da.map(|g| g.unbroadcast(sa)), db.map(|g| g.unbroadcast(sb))])
}

#[inline(always)]
pub(super) fn float_scalar<T: Float>(
    op: Binary,
    mut x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    if !x.tensor().is_recorded() {
        let lost = Lost::of(op.name(), caller, x.tensor());
        return compute_scalar(op, x, s, swapped).with_lost(lost);
    }
    let saves = op.saves_one(s.into_f64(), swapped);
    let small = !saves || x.tensor().is_small();
    let rule = BinaryRules::<T>::NUMBERS[op as usize][usize::from(swapped)];
    let kept = saves.then(|| x.tensor().clone());
    let node = NodeRef::with_edges(rule, caller, || Edges::One(x.edge(saves)));
    let saved = [saved(0, kept), Saved::Number(s.into_f64())];
    let node = node.saving(SavedState::of(saved, small));
    compute_scalar(op, x, s, swapped).attached(node, 0)
}

fn compute_scalar<T: Float>(op: Binary, x: Input<'_, T>, s: T, swapped: bool) -> Tensor<T> {
    let x = match inline_kernels::number(op, x, s, swapped) {
        Ok(done) => return done,
        Err(x) => x,
    };
    if (op, swapped) == (Binary::Pow, false) && s == T::from_f64(2.0) {
        return run_formula(Unary::Square.op().forward(), None, x);
    }
    if x.tensor().is_small() {
        let s = Input::Own(T::filled(x.tensor().shape(), s));
        let [a, b] = if swapped { [s, x] } else { [x, s] };
        return run_formula(of_two(op), Some(a), b);
    }
    let (shape, s) = (x.tensor().shape_owned(), formula::Operand::Own(Value::scalar(s)));
    Tensor::new(
        x.consume(|x| run_pass(of_two(op), &shape, &mut if swapped { [s, x] } else { [x, s] })),
    )
}

#[inline]
pub(super) fn scalar_gradient<T: Float>(
    (op, s, swapped): (Binary, T, bool),
    x: Option<&Tensor<T>>,
    g: Tensor<T>,
) -> Tensor<T> {
    let x = || x.unwrap_or_else(|| unreachable!("it was saved for this rule"));
    match (op, swapped) {
        (Binary::Add, _) | (Binary::Sub, false) => g,
        (Binary::Sub, true) => -g,
        (Binary::Mul, _) => g * s,
        (Binary::Div, false) => g / s,
        (Binary::Div, true) => g * -s / x() / x(),
        (Binary::Pow, false) if s == T::ZERO => g * T::ZERO,
        (Binary::Pow, false) if s == T::from_f64(2.0) => g * x() * s,
        (Binary::Pow, false) => g * x().pow(s - T::ONE) * s,
        (Binary::Pow, true) => g * x().rpow(s) * num_traits::Float::ln(s),
        (Binary::Maximum, _) => {
            gradient(&formula_ops::maximum(s.into_f64()), g, Some(Input::Ref(x())))
        }
        (Binary::Minimum, _) => {
            gradient(&formula_ops::minimum(s.into_f64()), g, Some(Input::Ref(x())))
        }
    }
}

pub(super) fn integer<T: Numeric>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let lost = Lost::of_all(op.name(), caller, &[left.tensor(), right.tensor()]);
    let shape = broadcast(op.name(), left.tensor().shape(), right.tensor().shape())?;
    if !shape.contains(&0) {
        check_divisor(op, &right.tensor().read())?;
    }
    let (a, b) = (left.tensor().read(), right.tensor().read());
    Ok(Tensor::new(convert_zip(&shape, &a, &b, of_integers(op))).with_lost(lost))
}

pub(super) fn integer_scalar<T: Numeric>(
    op: Binary,
    x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    let lost = Lost::of(op.name(), caller, x.tensor());
    let f = of_integers(op);
    let value = convert(&x.tensor().read(), |x| if swapped { f(s, x) } else { f(x, s) });
    Tensor::new(value).with_lost(lost)
}

/// # Functions of two tensors
impl<T: Numeric> Tensor<T> {
    /// Returns the greater of each two elements; NaN if either is NaN. The selected element gets
    /// the gradient, even if it is NaN, and the other exactly 0. Equal elements get half each;
    /// beside a scalar, the tensor gets the whole gradient.
    ///
    /// # Panics
    ///
    /// If the shapes cannot be broadcast together.
    #[track_caller]
    pub fn maximum(&self, other: impl Operand<T>) -> Tensor<T> {
        expect(other.operate(Binary::Maximum, Input::Ref(self), Location::caller()))
    }

    /// Returns the lesser of each two elements; NaN if either is NaN. Gradients as for [`Tensor::maximum`].
    ///
    /// # Panics
    ///
    /// If the shapes cannot be broadcast together.
    #[track_caller]
    pub fn minimum(&self, other: impl Operand<T>) -> Tensor<T> {
        expect(other.operate(Binary::Minimum, Input::Ref(self), Location::caller()))
    }
}

impl<T: Float> Tensor<T> {
    /// `self` to the power `exponent`, element by element. The gradients of a base of 0 with
    /// exponent 0, and of a nonnegative exponent of a base of 0, are 0.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from(vec![1.0, 2.0, 3.0]).pow(2.0).to_vec(), [1.0, 4.0, 9.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes cannot be broadcast together.
    #[doc(alias = "power")]
    #[doc(alias = "powf")]
    #[track_caller]
    pub fn pow(&self, exponent: impl Operand<T>) -> Tensor<T> {
        expect(exponent.operate(Binary::Pow, Input::Ref(self), Location::caller()))
    }

    /// `base` to the power `self`.
    #[track_caller]
    pub(crate) fn rpow(&self, base: T) -> Tensor<T> {
        T::binary_scalar(Binary::Pow, Input::Ref(self), base, true, Location::caller())
    }
}
