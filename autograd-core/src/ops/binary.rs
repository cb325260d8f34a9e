//! Elementwise functions of two tensors, with broadcasting.

use std::panic::Location;

use super::binary_ops::{of_integers, of_number, of_two};
use super::cast::number;
use super::elementwise::{Handle, call_shapes, recorded_as, run_formula, run_pass, run_single};
use super::gather::place;
use super::table::for_programs;
use super::table::{
    Form, OpDef, Type, arithmetic, broadcast as broadcast_forms, exactly, family, number,
    same_dtype,
};
use super::unary::small_power;
use super::{Binary, Caller, Float, Input, Numeric, Operand, expect};
use crate::array::Value;
use crate::array::elementwise::{convert, convert_zip};
use crate::array::shape::{broadcast, same};
use crate::error::{Error, Result};
use crate::formula::{self, binary_functions};
use crate::graph::{Edges, Lost, NodeRef, Op, Saved, SavedState, Tensor};

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
    let wants = [a.would_record(), b.would_record()];
    if wants == [false, false] {
        let lost = Lost::of_all(op.name(), caller, [a, b]);
        return Ok(compute(op, left, right)?.with_lost(lost));
    }
    let handle = Handle::Static(of_two::<T>(op));
    let (saves, rule) = (handle.keeps_pair(wants), recorded_as(&handle));
    let node = if a.is_small() && b.is_small() && same(a.shape(), b.shape()) {
        let [a, b] = [saves[0].then(|| a.clone()), saves[1].then(|| b.clone())];
        let edges = || Edges::Two([left.edge(saves[0]), right.edge(saves[1])]);
        let node = NodeRef::with_edges(rule, caller, edges);
        node.saving(SavedState::of([saved(0, a), saved(1, b)], true))
    } else {
        record_large(rule, &mut left, &mut right, saves, caller)?
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
) -> Result<NodeRef> {
    let (a, b) = (left.tensor(), right.tensor());
    let shapes = call_shapes(rule.name(), &[a, b])?;
    let mut saved = [saved(0, saves[0].then(|| a.clone())), saved(1, saves[1].then(|| b.clone()))];
    let edges = Edges::Two([left.edge(saves[0]), right.edge(saves[1])]);
    Ok(NodeRef::record(rule, edges, SavedState::new(shapes, &mut saved), caller))
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
    match small_pair(op, left, right) {
        Ok(done) => Ok(done),
        Err([left, right]) => compute_large(op, left, right),
    }
}

/// Computes the result on inline data; returns both operands if there is no kernel for them.
#[inline(always)]
fn small_pair<'a, T: Float>(
    op: Binary,
    left: Input<'a, T>,
    right: Input<'a, T>,
) -> Result<Tensor<T>, [Input<'a, T>; 2]> {
    let (a, b) = (left.tensor(), right.tensor());
    if !a.is_small() || !b.is_small() || !is_known(op) || !same(a.shape(), b.shape()) {
        return Err([left, right]);
    }
    let mut now = None;
    if right.is_temporary() && !left.is_temporary() {
        let a = left.small_data(&mut now);
        return Ok(right.overwrite_or_copy(|x| apply_small::<T>(op, true, x, a)));
    }
    let b = right.small_data(&mut now);
    Ok(left.overwrite_or_copy(|x| apply_small::<T>(op, false, x, b)))
}

/// As [`small_pair`], for a tensor and the number `s`, or, if swapped, for `s` and the tensor.
#[inline(always)]
fn small_and_number<T: Float>(
    op: Binary,
    x: Input<'_, T>,
    s: T,
    swapped: bool,
) -> Result<Tensor<T>, Input<'_, T>> {
    if !x.tensor().is_small() || !is_known(op) {
        return Err(x);
    }
    let mut number = T::INLINE;
    number.as_mut().fill(s);
    Ok(x.overwrite_or_copy(|x| apply_small::<T>(op, swapped, x, &number)))
}

#[inline(always)]
fn is_known(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
}

/// Writes the result over `x`; with the arguments exchanged if `swapped`.
#[inline]
fn apply_small<T: Float>(op: Binary, swapped: bool, x: &mut T::Inline, y: &T::Inline) {
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

#[inline(never)]
fn compute_large<'a, T: Float>(
    op: Binary,
    left: Input<'a, T>,
    right: Input<'a, T>,
) -> Result<Tensor<T>> {
    let (a, b) = (left.tensor(), right.tensor());
    let same = same(a.shape(), b.shape());
    let shape = if same { a.shape_owned() } else { broadcast(op.name(), a.shape(), b.shape())? };
    if same {
        return Ok(run_formula(of_two(op).forward(), Some(left), None, right));
    }
    let formula = of_two(op).forward();
    Ok(Tensor::from_value(
        left.consume(|a| right.consume(|b| run_pass(formula, &shape, &mut [a, b]))),
    ))
}

#[inline(always)]
pub(super) fn float_scalar<T: Float>(
    op: Binary,
    mut x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    if (op, swapped) == (Binary::Pow, false)
        && let Some(power) = small_power(s)
    {
        return run_single(power, x, caller);
    }
    if !x.tensor().would_record() {
        let lost = Lost::of(op.name(), caller, x.tensor());
        return compute_scalar(op, x, s, swapped).with_lost(lost);
    }
    let handle = Handle::Static(of_number::<T>(op, swapped));
    let ([saves, _], rule) = (handle.keeps_pair([true, false]), recorded_as(&handle));
    let small = !saves || x.tensor().is_small();
    let kept = saves.then(|| x.tensor().clone());
    let node = NodeRef::with_edges(rule, caller, || Edges::One(x.edge(saves)));
    let saved = [saved(0, kept), Saved::Number(s.into_f64())];
    let node = node.saving(SavedState::of(saved, small));
    compute_scalar(op, x, s, swapped).attached(node, 0)
}

fn compute_scalar<T: Float>(op: Binary, x: Input<'_, T>, s: T, swapped: bool) -> Tensor<T> {
    let x = match small_and_number(op, x, s, swapped) {
        Ok(done) => return done,
        Err(x) => x,
    };
    let formula = of_two(op).forward();
    if x.tensor().is_small() {
        if swapped {
            return run_formula(formula, None, Some(s), x);
        }
        let s = Input::Own(T::filled(x.tensor().shape(), s));
        return run_formula(formula, Some(x), None, s);
    }
    let (shape, s) = (x.tensor().shape_owned(), formula::Operand::Own(Value::scalar(s)));
    Tensor::from_value(
        x.consume(|x| run_pass(formula, &shape, &mut if swapped { [s, x] } else { [x, s] })),
    )
}

pub(super) fn integer<T: Numeric>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let lost = Lost::of_all(op.name(), caller, [left.tensor(), right.tensor()]);
    let shape = broadcast(op.name(), left.tensor().shape(), right.tensor().shape())?;
    if !shape.contains(&0) {
        check_divisor(op, &right.tensor().read())?;
    }
    let (a, b) = (left.tensor().read(), right.tensor().read());
    Ok(Tensor::from_value(convert_zip(&shape, &a, &b, of_integers(op))).with_lost(lost))
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
    Tensor::from_value(value).with_lost(lost)
}

/// # Functions of two tensors
impl<T: Numeric> Tensor<T> {
    /// Returns the greater of each two elements; NaN if either is NaN. The selected element gets
    /// the gradient, even if it is NaN, and the other exactly 0. Equal elements get half each;
    /// beside a scalar, the tensor gets the whole gradient.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let y = Tensor::from([1.0, 4.0]).maximum(&Tensor::from([3.0, 2.0]));
    /// assert_eq!(y.to_vec(), [3.0, 4.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes cannot be broadcast together.
    #[track_caller]
    pub fn maximum(&self, other: impl Operand<T>) -> Tensor<T> {
        expect(other.operate(Binary::Max, Input::Ref(self), Location::caller()))
    }

    /// Returns the lesser of each two elements; NaN if either is NaN. Gradients as for [`Tensor::maximum`].
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let y = Tensor::from([1.0, 4.0]).minimum(&Tensor::from([3.0, 2.0]));
    /// assert_eq!(y.to_vec(), [1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes cannot be broadcast together.
    #[track_caller]
    pub fn minimum(&self, other: impl Operand<T>) -> Tensor<T> {
        expect(other.operate(Binary::Min, Input::Ref(self), Location::caller()))
    }
}

/// # Powers
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
}

macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $name:ident
        [$e32:literal, $e64:literal, $x:literal, $other:literal => $y:literal]
        |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        /// # Functions of two numbers
        ///
        /// Each broadcasts as operators do; the other operand may be a number.
        impl<T: Float> Tensor<T> {
            $(
                $(#[$doc])*
                ///
                /// ```
                /// use autograd_core::{Tensor, assert_close};
                ///
                #[doc = concat!("let (x, other) = (Tensor::from([", $x, "]), Tensor::from([", $other, "]));")]
                #[doc = concat!("let y = x.", stringify!($method), "(&other);")]
                #[doc = concat!("assert_close!(y, Tensor::from([", $y, "]), rtol = 1e-15, atol = 0.0);")]
                /// ```
                ///
                /// # Panics
                ///
                /// If the shapes cannot be broadcast together.
                #[track_caller]
                pub fn $method(&self, other: impl Operand<T>) -> Tensor<T> {
                    expect(other.operate(Binary::$variant, Input::Ref(self), Location::caller()))
                }
            )*
        }
    };
}

binary_functions! { methods }
