//! The op set, one file a family. A rule is a line in a table; nothing here walks a graph.

pub(crate) mod binary;
mod compare;
mod create;
mod derived;
pub(crate) mod elementwise;
mod index;
mod inplace;
mod instances;
mod matmul;
mod nn;
mod operators;
pub(crate) mod reduce;
#[cfg(feature = "static-graph")]
pub(crate) mod rules;
mod shape;
mod small;
mod totals;
#[cfg_attr(
    not(feature = "static-graph"),
    allow(dead_code, reason = "only programs are made of notes")
)]
pub(crate) mod trace;
mod unary;

pub(crate) use binary::Binary;
#[cfg(feature = "static-graph")]
pub(crate) use compare::Comparison;
pub(crate) use compare::Comparisons;
#[cfg(feature = "nn")]
pub(crate) use index::check_indices;
pub(crate) use instances::{OfElements, instances};
#[cfg(feature = "nn")]
pub(crate) use nn::batch_norm;
pub use nn::{Conv2dOptions, IntoPair, PoolOptions};
#[cfg(feature = "static-graph")]
pub(crate) use nn::{conv2d_shape, pool2d_shape};
pub use operators::{Operand, Scalar};
use trace::Attr;
pub(crate) use unary::Unary;

use std::panic::Location;

use ndarray::LinalgScalar;

use crate::array::deferred::Step;
use crate::array::elementwise::Arg;
use crate::array::gemm::FloatMultiply;
use crate::array::math::Math;
use crate::array::matmul::Multiply;
use crate::array::{Storable, Value};
use crate::error::{Error, Result};
use crate::graph::{Edge, Element, Keepable, NodeRef, Tensor};
use crate::random::RandomFloat;
use instances::{OfFloats, OfNumbers};
use small::OfSmall;
use totals::Totals;

/// Where an op was called.
pub(crate) type Caller = &'static Location<'static>;

/// An element type with arithmetic: all but `bool`.
///
/// Operators on integers wrap, element by element, as in NumPy. Sums, products and matrix products of
/// integers are exact; one that the element type cannot hold is an
/// [`Error::Overflow`](crate::Error::Overflow).
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no arithmetic",
    label = "not a number type",
    note = "arithmetic is for f32, f64, i32, i64 and u8; `cast` changes the element type"
)]
#[allow(private_bounds, reason = "how numbers are computed is no part of the public interface")]
pub trait Numeric: Element + LinalgScalar + Arithmetic + Totals + Multiply + OfNumbers {
    #[doc(hidden)]
    fn nearest(value: f64) -> Self;
    #[doc(hidden)]
    fn binary(
        op: Binary,
        left: Input<'_, Self>,
        right: Input<'_, Self>,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn binary_scalar(
        op: Binary,
        x: Input<'_, Self>,
        scalar: Self,
        swapped: bool,
        caller: Caller,
    ) -> Tensor<Self>;
    #[doc(hidden)]
    fn reduce(
        op: reduce::Reduce,
        x: &Tensor<Self>,
        axes: &[isize],
        keep: bool,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn matmul(left: &Tensor<Self>, right: &Tensor<Self>, caller: Caller) -> Result<Tensor<Self>>;
}

/// A floating-point element type, which can be differentiated: `f32` or `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type, so a tensor of it has no gradient",
    label = "f32 or f64 is needed here",
    note = "`cast::<f32>()` or `cast::<f64>()` changes the element type"
)]
#[allow(private_bounds, reason = "how numbers are computed is no part of the public interface")]
pub trait Float:
    Numeric
    + num_traits::Float
    + Operand<Self>
    + RandomFloat
    + Math
    + FloatMultiply
    + nn::Kernels
    + OfFloats
    + Keepable
    + OfSmall
{
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number as `f64`.
    fn into_f64(self) -> f64;
    #[doc(hidden)]
    fn unary(op: Unary, x: Input<'_, Self>, caller: Caller) -> Tensor<Self>;
    #[doc(hidden)]
    fn formula(
        op: &'static dyn elementwise::Op<Self>,
        x: &Tensor<Self>,
        caller: Caller,
    ) -> Result<Tensor<Self>>;
    #[doc(hidden)]
    fn elementwise(
        op: elementwise::Handle<Self>,
        reals: &[&Tensor<Self>],
        masks: &[&Tensor<bool>],
        caller: Caller,
    ) -> Result<elementwise::Outputs<Self>>;
}

/// An element type with means and variances, which are those of floats: every [`Float`] is one.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no mean, variance or mean loss",
    label = "means are for f32 and f64",
    note = "convert the elements first: `.cast::<f64>()`; generic code asks for `T: Float`"
)]
pub trait HasMean: Float {}

#[diagnostic::do_not_recommend]
impl<T: Float> HasMean for T {}

/// Arithmetic of one element, the same for all number types.
pub(crate) trait Arithmetic: Storable {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// The greater one; NaN if either is.
    fn greater(self, other: Self) -> Self;
    /// The lesser one; NaN if either is.
    fn lesser(self, other: Self) -> Self;
    /// A number that no other exceeds, and one below which none lies.
    const LOWEST: Self;
    const HIGHEST: Self;
    /// Whether sums and products do not depend on the order.
    const EXACT: bool;
    fn count(n: usize) -> Self;
}

/// An operand that an op may consume: an owned temporary lends its buffer to the result.
#[doc(hidden)]
pub enum Input<'a, T: Element> {
    Own(Tensor<T>),
    Ref(&'a Tensor<T>),
}

impl<T: Element> Input<'_, T> {
    pub(crate) fn tensor(&self) -> &Tensor<T> {
        match self {
            Self::Own(tensor) => tensor,
            Self::Ref(tensor) => tensor,
        }
    }

    /// Where the operand's gradient goes. A temporary that backward does not need gives its place in
    /// the graph away: it is the op's alone.
    pub(crate) fn edge(&mut self, kept: bool) -> Edge {
        match self {
            Self::Own(tensor) if !kept => tensor.take_edge(),
            _ => self.tensor().edge(),
        }
    }

    /// Runs a kernel in place: in the operand's own allocation, if it is a temporary that nobody
    /// else can see, or on a copy, if it is small. The result is an output of `node`, or outside
    /// the graph.
    pub(crate) fn try_in_place(
        self,
        run: impl FnOnce(&mut [T]),
        node: impl FnOnce() -> Option<NodeRef>,
    ) -> Result<Tensor<T>, Self> {
        let mut tensor = match self {
            Self::Own(tensor) if tensor.is_temporary() => tensor,
            other => match other.tensor().small_copy() {
                Some(copy) => copy,
                None => return Err(other),
            },
        };
        // Deferred steps are computed in the op's own pass.
        let run = |value: &mut Value<T>| {
            !value.is_deferred() && value.as_padded_mut_slice().map(run).is_some()
        };
        if tensor.try_in_place(run, node) { Ok(tensor) } else { Err(Self::Own(tensor)) }
    }

    /// Whether it is a temporary that nobody else can see.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, Self::Own(tensor) if tensor.is_temporary())
    }

    /// Runs a kernel on the value: the value itself where nobody else can see it.
    pub(crate) fn consume<R>(self, kernel: impl FnOnce(Arg<'_, T>) -> R) -> R {
        match self {
            Self::Own(tensor) => match tensor.try_into_value() {
                Ok(value) => kernel(Arg::Own(value)),
                Err(tensor) => kernel(Arg::Ref(&tensor.read())),
            },
            Self::Ref(tensor) => kernel(Arg::Ref(&tensor.read())),
        }
    }
}

impl<T: Float> Input<'_, T> {
    /// Whether [`try_defer`](Self::try_defer) does.
    #[inline]
    pub(crate) fn can_defer(&self) -> bool {
        self.tensor().fixed().is_some_and(Value::can_defer)
    }

    /// Defers a cheap function of each element, if `step` is one, until the result is read, where the
    /// operand is large. The result is an output of `node`, or outside the graph.
    #[inline(always)]
    pub(crate) fn try_defer(
        self,
        step: impl FnOnce() -> Option<Step<T>>,
        node: impl FnOnce() -> Option<NodeRef>,
    ) -> Result<Tensor<T>, Self> {
        match if self.can_defer() { step() } else { None } {
            Some(step) => self.defer(step, node),
            None => Err(self),
        }
    }

    #[inline(never)]
    fn defer(
        self,
        step: Step<T>,
        node: impl FnOnce() -> Option<NodeRef>,
    ) -> Result<Tensor<T>, Self> {
        match self {
            Self::Own(mut tensor) if tensor.is_temporary() => {
                match tensor.try_in_place(|value| value.try_defer(step), node) {
                    true => Ok(tensor),
                    false => Err(Self::Own(tensor)),
                }
            }
            other => {
                let mut value = other.tensor().read().into_owned();
                if value.try_defer(step) { Ok(Tensor::output(value, node())) } else { Err(other) }
            }
        }
    }
}

/// The sum of two parts of a tangent.
pub(crate) fn joined<T: Float>(a: Option<Tensor<T>>, b: Option<Tensor<T>>) -> Option<Tensor<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// The panicking form of a fallible op.
#[track_caller]
pub(crate) fn expect<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => failed(error),
    }
}

/// Takes the error: it is dropped here, and not in every crate with a call.
#[cold]
#[track_caller]
pub(crate) fn failed(error: Error) -> ! {
    panic!("{error}")
}

macro_rules! arithmetic {
    (floats: $($f:ty)*; integers: $($i:ty)*;) => {
        $(impl Arithmetic for $f {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self {
                if self < other || self.is_nan() { self } else { other }
            }
            const LOWEST: Self = <$f>::NEG_INFINITY;
            const HIGHEST: Self = <$f>::INFINITY;
            const EXACT: bool = false;
            fn count(n: usize) -> Self { n as $f }
        })*
        // Element by element integers wrap, as in NumPy; a division by zero panics, as in Rust.
        // What is added up does not wrap: see `Totals`.
        $(impl Arithmetic for $i {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self.wrapping_div(other) }
            #[inline(always)]
            fn greater(self, other: Self) -> Self { Ord::max(self, other) }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self { Ord::min(self, other) }
            const LOWEST: Self = <$i>::MIN;
            const HIGHEST: Self = <$i>::MAX;
            const EXACT: bool = true;
            fn count(n: usize) -> Self { n as $i }
        })*
    };
}

arithmetic! {
    floats: f32 f64;
    integers: i32 i64 u8;
}

// The doors: thin generic methods in a user's crate end here, so that the rules and kernels behind
// them are compiled once, in this crate.
macro_rules! doors {
    ($($t:ty => $binary:path, $scalar:path, $reduce:path, $matmul:path;)*) => {$(
        impl Numeric for $t {
            fn nearest(value: f64) -> Self {
                value as $t
            }
            fn binary(
                op: Binary,
                left: Input<'_, Self>,
                right: Input<'_, Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                #[cold]
                fn noted(
                    op: Binary,
                    left: Input<'_, $t>,
                    right: Input<'_, $t>,
                    caller: Caller,
                ) -> Result<Tensor<$t>> {
                    let inputs = vec![trace::any(left.tensor()), trace::any(right.tensor())];
                    let run = || $binary(op, left, right, caller);
                    trace::op(|| trace::Call::of("binary", op.name(), []), || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, left, right, caller);
                }
                $binary(op, left, right, caller)
            }
            fn binary_scalar(
                op: Binary,
                x: Input<'_, Self>,
                scalar: Self,
                swapped: bool,
                caller: Caller,
            ) -> Tensor<Self> {
                #[cold]
                fn noted(
                    op: Binary,
                    x: Input<'_, $t>,
                    scalar: $t,
                    swapped: bool,
                    caller: Caller,
                ) -> Tensor<$t> {
                    // A program has its numbers as `f64`, which may not hold an integer.
                    if !<$t>::DTYPE.is_float() && (scalar as f64) as $t != scalar {
                        let number = Input::Own(Tensor::from(scalar));
                        let [a, b] = if swapped { [number, x] } else { [x, number] };
                        return expect(<$t as Numeric>::binary(op, a, b, caller));
                    }
                    let inputs = vec![trace::any(x.tensor())];
                    let call = || {
                        let attrs = [Attr::Number(scalar as f64), Attr::Flag(swapped)];
                        trace::Call::of("scalar", op.name(), attrs)
                    };
                    let run = || $scalar(op, x, scalar, swapped, caller);
                    trace::op(call, || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, x, scalar, swapped, caller);
                }
                $scalar(op, x, scalar, swapped, caller)
            }
            fn reduce(
                op: reduce::Reduce,
                x: &Tensor<Self>,
                axes: &[isize],
                keep: bool,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                let call = || {
                    let attrs = [Attr::Ints(axes.to_vec()), Attr::Flag(keep)];
                    trace::Call::of("reduce", op.name(), attrs)
                };
                let run = || $reduce(op, x, axes, keep, caller);
                trace::op(call, || vec![trace::any(x)], caller, run)
            }
            fn matmul(
                left: &Tensor<Self>,
                right: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                let inputs = || vec![trace::any(left), trace::any(right)];
                trace::op(|| trace::Call::op("matmul", []), inputs, caller, || $matmul(left, right, caller))
            }
        }
    )*};
}

doors! {
    f32 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    f64 => binary::float, binary::float_scalar, reduce::float, matmul::float;
    i32 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    i64 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
    u8 => binary::integer, binary::integer_scalar, reduce::integer, matmul::integer;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Float for $t {
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn into_f64(self) -> f64 {
                f64::from(self)
            }
            fn unary(op: Unary, x: Input<'_, Self>, caller: Caller) -> Tensor<Self> {
                #[cold]
                fn noted(op: Unary, x: Input<'_, $t>, caller: Caller) -> Tensor<$t> {
                    let inputs = vec![trace::any(x.tensor())];
                    let run = || elementwise::run_single(op.handle(), x, caller);
                    trace::op(|| trace::Call::of("unary", op.name(), []), || inputs, caller, run)
                }
                if trace::is_noting() {
                    return noted(op, x, caller);
                }
                match small::unary(op.op(), x, caller) {
                    Ok(done) => done,
                    Err(x) => elementwise::run_single(op.handle(), x, caller),
                }
            }
            fn formula(
                op: &'static dyn elementwise::Op<Self>,
                x: &Tensor<Self>,
                caller: Caller,
            ) -> Result<Tensor<Self>> {
                if !trace::is_noting()
                    && let Ok(done) = small::unary(op, Input::Ref(x), caller)
                {
                    return Ok(done);
                }
                let op = elementwise::Handle::Static(op);
                let [y] = Self::elementwise(op, &[x], &[], caller)?
                    .into_inner()
                    .unwrap_or_else(|_| unreachable!("the op has one result"));
                Ok(y)
            }
            fn elementwise(
                op: elementwise::Handle<Self>,
                reals: &[&Tensor<Self>],
                masks: &[&Tensor<bool>],
                caller: Caller,
            ) -> Result<elementwise::Outputs<Self>> {
                let inputs = || {
                    let reals = reals.iter().map(|x| trace::any(*x));
                    reals.chain(masks.iter().map(|mask| trace::any(*mask))).collect()
                };
                if trace::is_noting() {
                    let call = trace::formula(&op);
                    let run = || elementwise::run(op, reals, masks, caller);
                    return trace::op(|| call, inputs, caller, run);
                }
                elementwise::run(op, reals, masks, caller)
            }
        }
    )*};
}

floats! { f32 f64 }
