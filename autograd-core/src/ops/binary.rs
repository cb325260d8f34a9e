//! Functions of two tensors, element by element, with broadcasting.

use std::panic::Location;

use super::derived::bound;
use super::elementwise::{Handle, gradient, gradients_of};
use super::{Arithmetic, Caller, Float, Input, Numeric, expect, joined};
use super::{small, trace};
use crate::array::deferred::Step;
use crate::array::elementwise::{Zip, ZipAny, over, over_scalar, zip, zip_scalar};
use crate::array::math::Math;
use crate::array::shape::{broadcast, copied, same};
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::graph::{
    Elementwise, Keep, Lost, NodeRef, Plain, PushRule, Tensor, is_grad_enabled, op_node,
    unrecorded, with_push,
};

/// The functions of two tensors.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Maximum,
    Minimum,
}

impl Binary {
    #[cfg(feature = "static-graph")]
    pub(crate) const ALL: &'static [Self] =
        &[Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Pow, Self::Maximum, Self::Minimum];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Pow => "pow",
            Self::Maximum => "maximum",
            Self::Minimum => "minimum",
        }
    }

    /// Whether the gradient of the left, or right, operand needs the left, or right, operand.
    pub(super) fn saves(self, [left, right]: [bool; 2]) -> [bool; 2] {
        match self {
            Self::Add | Self::Sub => [false, false],
            Self::Mul => [right, left],
            Self::Div => [right, left || right],
            Self::Pow | Self::Maximum | Self::Minimum => [true, true],
        }
    }
}

/// The rules: from the operands `a` and `b` and the gradient `g` of the result, the gradients of
/// the operands, each only where it is wanted. What is not here has a derived rule.
#[inline]
pub(super) fn gradients<'a, T: Float>(
    op: Binary,
    a: impl Fn() -> &'a Tensor<T>,
    b: impl Fn() -> &'a Tensor<T>,
    g: Tensor<T>,
    [left, right]: [bool; 2],
) -> [Option<Tensor<T>>; 2] {
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
    match (left, right) {
        (true, true) => [Some(da(g.clone())), Some(db(g))],
        (true, false) => [Some(da(g)), None],
        (false, true) => [None, Some(db(g))],
        (false, false) => [None, None],
    }
}

/// The kernels, one for all number types.
#[derive(Clone, Copy)]
struct Add;
#[derive(Clone, Copy)]
struct Sub;
#[derive(Clone, Copy)]
struct SubFrom;
#[derive(Clone, Copy)]
struct Mul;
#[derive(Clone, Copy)]
struct Div;
#[derive(Clone, Copy)]
struct DivInto;
#[derive(Clone, Copy)]
struct Maximum;
#[derive(Clone, Copy)]
struct MaximumOf;
#[derive(Clone, Copy)]
struct Minimum;
#[derive(Clone, Copy)]
struct MinimumOf;
#[derive(Clone, Copy)]
struct Pow;
#[derive(Clone, Copy)]
struct PowOf;

/// Of the left operand.
#[derive(Clone, Copy)]
struct Square;

macro_rules! kernels {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl<T: Arithmetic> Zip<T> for $name {
            const ARITHMETIC: bool = true;

            #[inline(always)]
            fn call<const FMA: bool>(self, $a: T, $b: T) -> T {
                $body
            }
        }
    )*};
}

kernels! {
    Add |a, b| a.plus(b);
    Sub |a, b| a.minus(b);
    SubFrom |a, b| b.minus(a);
    Mul |a, b| a.times(b);
    Div |a, b| a.over(b);
    DivInto |a, b| b.over(a);
    Maximum |a, b| a.greater(b);
    MaximumOf |a, b| b.greater(a);
    Minimum |a, b| a.lesser(b);
    MinimumOf |a, b| b.lesser(a);
    Square |a, _b| a.times(a);
}

impl<T: Math> Zip<T> for Pow {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        a.v_pow::<FMA>(b)
    }
}

impl<T: Math> Zip<T> for PowOf {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        b.v_pow::<FMA>(a)
    }
}

/// The function of a tensor and `s`, or of `s` and the tensor, if it can be deferred.
fn step<T>(op: Binary, s: T, swapped: bool) -> Option<Step<T>> {
    Some(match (op, swapped) {
        (Binary::Add, _) => Step::Add(s),
        (Binary::Sub, false) => Step::Sub(s),
        (Binary::Sub, true) => Step::SubFrom(s),
        (Binary::Mul, _) => Step::Mul(s),
        (Binary::Div, false) => Step::Div(s),
        (Binary::Div, true) => Step::DivInto(s),
        (Binary::Maximum, false) => Step::Max(s),
        (Binary::Minimum, false) => Step::Min(s),
        // Of two zeros the right one is the greater, and the lesser.
        (Binary::Maximum | Binary::Minimum, true) | (Binary::Pow, _) => return None,
    })
}

/// One kernel for all functions of integers: they are too rare to be compiled one by one.
#[derive(Clone, Copy)]
struct Integer(Binary, bool);

impl<T: Arithmetic> Zip<T> for Integer {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        let (a, b) = if self.1 { (b, a) } else { (a, b) };
        match self.0 {
            Binary::Add => a.plus(b),
            Binary::Sub => a.minus(b),
            Binary::Mul => a.times(b),
            Binary::Div => a.over(b),
            Binary::Maximum => a.greater(b),
            Binary::Minimum => a.lesser(b),
            Binary::Pow => unreachable!("`pow` is offered for floats only"),
        }
    }
}

/// The kernel of a function and that of the function with its arguments exchanged.
pub(crate) fn kernels<T: Float>(op: Binary) -> [&'static dyn ZipAny<T>; 2] {
    match op {
        Binary::Add => [&Add, &Add],
        Binary::Sub => [&Sub, &SubFrom],
        Binary::Mul => [&Mul, &Mul],
        Binary::Div => [&Div, &DivInto],
        Binary::Pow => [&Pow, &PowOf],
        Binary::Maximum => [&Maximum, &MaximumOf],
        Binary::Minimum => [&Minimum, &MinimumOf],
    }
}

/// As [`kernels`], for integers.
pub(crate) fn integer_kernels<T: Arithmetic>(op: Binary) -> [&'static dyn ZipAny<T>; 2] {
    macro_rules! both {
        ($($op:ident)*) => {
            match op {
                $(Binary::$op => {
                    [&Integer(Binary::$op, false), &Integer(Binary::$op, true)]
                })*
            }
        };
    }
    both! { Add Sub Mul Div Pow Maximum Minimum }
}

fn compute<T: Numeric>(
    shape: &[usize],
    left: Input<'_, T>,
    right: Input<'_, T>,
    [f, swapped]: [&dyn ZipAny<T>; 2],
) -> Value<T> {
    left.consume(|a| right.consume(|b| zip(shape, a, b, f, swapped)))
}

/// For floats: computes and, where it must be, records.
#[inline(always)]
pub(super) fn float<T: Float>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    match small::pair(op, left, right, caller) {
        Ok(done) => Ok(done),
        Err([left, right]) => any(op, left, right, caller),
    }
}

/// The same of operands of any size and layout.
#[inline(never)]
fn any<'a, T: Float>(
    op: Binary,
    mut left: Input<'a, T>,
    mut right: Input<'a, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let (a, b) = (left.tensor(), right.tensor());
    let same = same(a.shape(), b.shape());
    let stretched = if same { None } else { Some(broadcast(op.name(), a.shape(), b.shape())?) };
    let wants = [a.is_recorded(), b.is_recorded()];
    let lost = match wants {
        [false, false] => Lost::of_all(op.name(), caller, [a, b]),
        _ => Lost::NONE,
    };
    let saves = op.saves(wants);
    let mut node = (wants != [false, false]).then(|| {
        let (a, b) = (left.tensor(), right.tensor());
        let kept = (saves[0].then(|| Keep::input(0, a)), saves[1].then(|| Keep::input(1, b)));
        // Shapes to which the gradients must be summed where an operand was stretched.
        let shapes = (!same).then(|| Box::new([a.shape_owned(), b.shape_owned()]));
        let state = with_push::<T, _, _>(Tangent, (Plain(op), kept.0, kept.1, Plain(shapes)));
        let edges = [left.edge(saves[0]), right.edge(saves[1])];
        op_node(op.name(), caller, edges, state, pull)
    });
    let [f, swapped] = kernels(op);
    if same {
        // A temporary is written over; otherwise a copy of the left operand, if it is small.
        if right.is_temporary() && !left.is_temporary() {
            match try_in_place(right, &left, swapped, &mut node) {
                Ok(done) => return Ok(done.with_lost(lost)),
                Err(operand) => right = operand,
            }
        }
        match try_in_place(left, &right, f, &mut node) {
            Ok(done) => return Ok(done.with_lost(lost)),
            Err(operand) => left = operand,
        }
    }
    let shape = stretched.unwrap_or_else(|| left.tensor().shape_owned());
    let value = match op {
        Binary::Mul => unchanged(&left, &right, &shape),
        _ => None,
    };
    let done = match value {
        Some(value) => Tensor::output(value, node),
        None => match with_number(op, left, right, &mut node) {
            Ok(deferred) => deferred,
            Err([left, right]) => Tensor::output(compute(&shape, left, right, [f, swapped]), node),
        },
    };
    Ok(done.with_lost(lost))
}

/// With one number that is shown as many, as the gradient of a sum is: deferred.
/// Otherwise both operands come back.
fn with_number<'a, T: Float>(
    op: Binary,
    left: Input<'a, T>,
    right: Input<'a, T>,
    node: &mut Option<NodeRef>,
) -> Result<Tensor<T>, [Input<'a, T>; 2]> {
    let same = left.tensor().shape() == right.tensor().shape();
    let number = |x: &Input<'_, T>| if same { x.tensor().read().uniform() } else { None };
    if let Some(s) = number(&right) {
        let done = left.try_defer(|| step(op, s, false), || node.take());
        return done.map_err(|left| [left, right]);
    }
    if let Some(s) = number(&left) {
        let done = right.try_defer(|| step(op, s, true), || node.take());
        return done.map_err(|right| [left, right]);
    }
    Err([left, right])
}

/// The product with a 1 that is shown as many, such as the gradient of a sum: the other operand.
fn unchanged<T: Float>(
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

/// Writes `f(a, b)` over `a`, if `a` is a temporary or small; the shapes are the same.
fn try_in_place<'a, T: Float>(
    a: Input<'a, T>,
    b: &Input<'_, T>,
    f: &dyn ZipAny<T>,
    node: &mut Option<NodeRef>,
) -> Result<Tensor<T>, Input<'a, T>> {
    let read = b.tensor().read();
    match read.in_memory() {
        Some(y) => a.try_in_place(|x| over(f, x, y), || node.take()),
        None => Err(a),
    }
}

/// Forward mode of the functions that are linear in each operand, and of the quotient.
struct Tangent;

type State<T> = (Plain<Binary>, Option<Keep<T>>, Option<Keep<T>>, Plain<Option<Box<[Shape; 2]>>>);

impl<T: Float> PushRule<T, State<T>> for Tangent {
    fn push(
        (op, a, b, _): Kept<T>,
        tangents: &[Option<Tensor<T>>],
        shape: &[usize],
    ) -> Result<Option<Tensor<T>>> {
        let a = || a.as_ref().unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
        let b = || b.as_ref().unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
        let (da, db) = (tangents[0].clone(), tangents[1].clone());
        let dy = match op {
            Binary::Add => joined(da, db),
            Binary::Sub => joined(da, db.map(|db| -db)),
            Binary::Mul => joined(da.map(|da| da * b()), db.map(|db| db * a())),
            Binary::Div => joined(da.map(|da| da / b()), db.map(|db| -(db * a() / b()) / b())),
            Binary::Pow | Binary::Maximum | Binary::Minimum => None,
        };
        // One tangent alone may be of an operand that is stretched.
        Ok(dy.map(|dy| if dy.shape() == shape { dy } else { dy.broadcast_to(shape) }))
    }
}

pub(super) type Kept<T> = (Binary, Option<Tensor<T>>, Option<Tensor<T>>, Option<Box<[Shape; 2]>>);

pub(super) fn pull<T: Float>(
    (op, a, b, shapes): Kept<T>,
    g: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let a = || a.as_ref().unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
    let b = || b.as_ref().unwrap_or_else(|| unreachable!("`saves` names what the rules use"));
    // A walk may pass without wanting anything; then nothing may have been saved either.
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
    let grads = gradients(op, a, b, g, wants);
    let Some(shapes) = shapes else { return Ok(grads) };
    // The one place where broadcasting is undone.
    let [da, db] = grads;
    let [sa, sb] = *shapes;
    Ok([da.map(|g| g.sum_to(&sa)), db.map(|g| g.sum_to(&sb))])
}

/// For floats and a scalar.
#[inline(always)]
pub(super) fn float_scalar<T: Float>(
    op: Binary,
    x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    match small::number(op, x, s, swapped, caller) {
        Ok(done) => done,
        Err(x) => any_scalar(op, x, s, swapped, caller),
    }
}

/// The same of a tensor of any size and layout.
#[inline(never)]
fn any_scalar<T: Float>(
    op: Binary,
    mut x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    let kernel: &dyn ZipAny<T> = match (op, swapped) {
        (Binary::Pow, false) if s == T::from_f64(2.0) => &Square,
        _ => kernels(op)[usize::from(swapped)],
    };
    let recorded = x.tensor().is_recorded();
    let lost = if recorded { Lost::NONE } else { Lost::of(op.name(), caller, x.tensor()) };
    let mut node = recorded.then(|| {
        let needs_x = match (op, swapped) {
            (Binary::Add | Binary::Sub | Binary::Mul, _) | (Binary::Div, false) => false,
            (Binary::Div, true) | (Binary::Pow | Binary::Maximum | Binary::Minimum, _) => true,
        };
        let kept = needs_x.then(|| Keep::input(0, x.tensor()));
        let state = Elementwise((Plain((op, s, swapped)), kept));
        op_node(op.name(), caller, [x.edge(needs_x)], state, pull_scalar)
    });
    let done = x
        .try_defer(|| step(op, s, swapped), || node.take())
        .or_else(|x| x.try_in_place(|x| over_scalar(kernel, x, s), || node.take()));
    let y = match done {
        Ok(done) => done,
        Err(x) => Tensor::output(x.consume(|x| zip_scalar(x, s, kernel)), node),
    };
    y.with_lost(lost)
}

/// [`scalar_gradient`] as the rule of a node.
pub(super) fn pull_scalar<T: Float>(
    (rule, kept): ((Binary, T, bool), Option<Tensor<T>>),
    g: Tensor<T>,
    _: [bool; 1],
) -> Result<[Option<Tensor<T>>; 1]> {
    let x = || kept.as_ref().unwrap_or_else(|| unreachable!("it was kept for this rule"));
    Ok([Some(scalar_gradient(rule, x, g))])
}

/// The rules for one operand `x` and the scalar `s`.
#[inline]
pub(super) fn scalar_gradient<'a, T: Float>(
    (op, s, swapped): (Binary, T, bool),
    x: impl Fn() -> &'a Tensor<T>,
    g: Tensor<T>,
) -> Tensor<T> {
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
        (Binary::Maximum | Binary::Minimum, _) => gradient(&bound(op, s), g, Some(Input::Ref(x()))),
    }
}

/// For integers: no gradient, no power.
pub(super) fn integer<T: Numeric>(
    op: Binary,
    left: Input<'_, T>,
    right: Input<'_, T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let lost = Lost::of_all(op.name(), caller, [left.tensor(), right.tensor()]);
    let shape = broadcast(op.name(), left.tensor().shape(), right.tensor().shape())?;
    Ok(Tensor::new(compute(&shape, left, right, integer_kernels(op))).with_lost(lost))
}

/// For integers and a scalar.
pub(super) fn integer_scalar<T: Numeric>(
    op: Binary,
    x: Input<'_, T>,
    s: T,
    swapped: bool,
    caller: Caller,
) -> Tensor<T> {
    let lost = Lost::of(op.name(), caller, x.tensor());
    Tensor::new(x.consume(|x| zip_scalar(x, s, &Integer(op, swapped)))).with_lost(lost)
}

/// The sum along sorted axes, of the shape that is left.
fn summed_to<T: Numeric>(x: &Tensor<T>, axes: &[usize], shape: &[usize]) -> Tensor<T> {
    let sum = expect(T::sum("sum", &x.read(), axes)).reshaped(copied(shape));
    unrecorded("sum", Location::caller(), [x], sum)
}

impl<T: Numeric> Tensor<T> {
    /// Summed to a shape from which this one was broadcast.
    pub(crate) fn sum_to(self, shape: &[usize]) -> Tensor<T> {
        if self.shape() == shape {
            return self;
        }
        let extra = self.ndim() - shape.len();
        let axes = (0..self.ndim())
            .filter(|&i| i < extra || (shape[i - extra] == 1 && self.shape()[i] != 1));
        if !is_grad_enabled() && !trace::is_noting() {
            let axes: Shape = axes.collect();
            return summed_to(&self, &axes, shape);
        }
        let axes: Vec<isize> = axes.map(|i| i as isize).collect();
        let summed = if axes.is_empty() { self } else { self.sum_axes_keep(&axes) };
        if summed.shape() == shape { summed } else { summed.reshape(Shape::from_slice(shape)) }
    }
}
