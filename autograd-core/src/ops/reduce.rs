//! Sums, means, products and extremes along axes, and whether any or all elements of a mask are true.

use std::panic::Location;

use super::binary_ops::of_two;
use super::elementwise::run_pass;
use super::shape::{inverse, signed};
use super::table::infer::float as float_form;
use super::table::values::float;
use super::table::{Form, OpDef, Type, arithmetic, exactly, family, for_programs, number, reduced};
use super::{Arithmetic, Binary, Caller, Float, HasMean, Numeric, Reduce, expect, pairs};
use crate::array::reduce::{Fold, fold_axes};
use crate::array::shape::{axes as check_axes, same};
use crate::array::{IntoAxes, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::formula::Operand;
use crate::graph::{Element, Rule, Saved, SavedReader, Tensor, finish, unrecorded};

family! {
    REDUCTIONS of Reduce::ALL => OpDef {
        family: "reduce",
        attrs: &[("axes", Type::Ints), ("keep", Type::Flag)],
        show: for_programs(|op| match (op.ints(0), op.flag(1)) {
            ([], false) => String::new(),
            (axes, false) => format!("axes={axes:?}"),
            (axes, true) => format!("axes={axes:?}, keep"),
        }),
        infer: for_programs(|op, inputs| {
            let [x] = exactly(inputs)?;
            let x = match Reduce::ALL[op.def.index] {
                Reduce::Mean => float_form(x)?,
                _ => arithmetic(Binary::Add, x)?,
            };
            Ok(vec![Form::new(x.dtype, reduced(&x.dims, op.ints(0), op.flag(1))?)])
        }),
        run: |op, x, at| match Reduce::ALL[op.def.index] {
            Reduce::Mean => float!(x, x => {
                Numeric::reduce(Reduce::Mean, &x, op.ints(0), op.flag(1), at)
            }),
            other => number!(x, x => Numeric::reduce(other, &x, op.ints(0), op.flag(1), at)),
        },
        ..OpDef::new("")
    }
}

macro_rules! folds {
    ($($name:ident<$bound:ident> $start:expr, |$a:ident, $b:ident| $join:expr;)*) => {$(
        pub(super) struct $name;
        impl<T: $bound> Fold<T> for $name {
            #[inline(always)]
            fn is_exact(&self) -> bool { T::EXACT }
            #[inline(always)]
            fn start(&self) -> T { $start }
            #[inline(always)]
            fn join(&self, $a: T, $b: T) -> T { $join }
        }
    )*};
}

folds! {
    // Integers are multiplied in a wider type.
    Prod<Float> T::ONE, |a, b| a.times(b);
    Max<Arithmetic> T::LOWEST, |a, b| a.greater(b);
    Min<Arithmetic> T::HIGHEST, |a, b| a.lesser(b);
}

fn group(shape: &[usize], axes: &[usize]) -> usize {
    axes.iter().map(|&axis| shape[axis]).product()
}

/// Reduces along sorted `axes`, which stay with length 1.
fn compute<T: Numeric>(op: Reduce, x: &Value<T>, axes: &[usize]) -> Result<Value<T>> {
    if group(x.shape(), axes) == 0 && matches!(op, Reduce::Max | Reduce::Min) {
        let expected = "of one element or more along the reduced axes";
        return Err(Error::shape(op.name(), RECEIVER, expected, x.shape()));
    }
    match op {
        Reduce::Sum => T::sum(op.name(), x, axes),
        Reduce::Prod => T::prod(op.name(), x, axes),
        Reduce::Max => Ok(fold_axes(x, axes, &Max)),
        Reduce::Min => Ok(fold_axes(x, axes, &Min)),
        Reduce::Mean => unreachable!("a mean is a sum of floats, divided"),
    }
}

/// Returns the sum divided by the count. Where it may have overflowed, the elements are divided first.
fn mean<T: Float>(x: &Value<T>, axes: &[usize]) -> Result<Value<T>> {
    let count = T::from_f64(group(x.shape(), axes) as f64);
    let divided = |x: &Value<T>| {
        let operands = &mut [Operand::Ref(x), Operand::Own(Value::scalar(count))];
        run_pass(of_two(Binary::Div).forward(), x.shape(), operands)
    };
    let sum = compute(Reduce::Sum, x, axes)?;
    let mut means = divided(&sum);
    if sum.contiguous().as_slice().is_some_and(|sums| sums.iter().all(|sum| sum.is_finite())) {
        return Ok(means);
    }
    let smaller = compute(Reduce::Sum, &divided(x), axes)?;
    let smaller = smaller.contiguous();
    for (mean, &smaller) in means.make_mut().iter_mut().zip(smaller.as_slice().unwrap_or(&[])) {
        if !mean.is_finite() {
            *mean = smaller;
        }
    }
    Ok(means)
}

/// Applies `compute` to the value along `axes`, which stay if `keep`; also returns their sorted positions.
fn reduced_value<T: Numeric>(
    op: Reduce,
    x: &Tensor<T>,
    (axes, keep): (&[isize], bool),
    compute: impl FnOnce(&Value<T>, &[usize]) -> Result<Value<T>>,
) -> Result<(Value<T>, Shape)> {
    let axes = check_axes(op.name(), axes, x.ndim())?;
    let value = compute(&x.read(), &axes)?;
    if keep {
        return Ok((value, axes));
    }
    Ok((value.reshaped(without(x.shape(), &axes)), axes))
}

pub(super) fn integer<T: Numeric>(
    op: Reduce,
    x: &Tensor<T>,
    axes: &[isize],
    keep: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    let (value, _) = reduced_value(op, x, (axes, keep), |x, axes| compute(op, x, axes))?;
    Ok(unrecorded(op.name(), caller, &[x], value))
}

pub(super) fn float<T: Float>(
    op: Reduce,
    x: &Tensor<T>,
    axes: &[isize],
    keep: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    let (value, axes) = reduced_value(op, x, (axes, keep), |x, axes| match op {
        Reduce::Mean => mean(x, axes),
        _ => compute(op, x, axes),
    })?;
    Ok(finish(op.name(), caller, &[x], value, || {
        let saved = match op {
            Reduce::Sum | Reduce::Mean => None,
            Reduce::Prod | Reduce::Max | Reduce::Min => Some(Saved::input(0, x)),
        };
        let (shape, again) = (x.shape_owned(), axes.clone());
        let back = move |saved: &mut SavedReader<'_>, dy: Tensor<T>, _: &[bool]| {
            Ok([Some(pull((op, &shape, &axes), saved.optional()?, dy)?)])
        };
        Rule::new(saved, back).with_push(move |_, tangents: &[Option<Tensor<T>>], shape| {
            let (Reduce::Sum | Reduce::Mean, Some(dx)) = (op, &tangents[0]) else {
                return Ok(None);
            };
            let dy = T::reduce(op, dx, &signed(&again), false, Location::caller())?;
            Ok(Some(if dy.shape() == shape { dy } else { dy.reshape(Shape::from_slice(shape)) }))
        })
    }))
}

fn pull<T: Float>(
    (op, shape, axes): (Reduce, &[usize], &[usize]),
    x: Option<Tensor<T>>,
    dy: Tensor<T>,
) -> Result<Tensor<T>> {
    let mut unreduced = Shape::from_slice(shape);
    axes.iter().for_each(|&axis| unreduced[axis] = 1);
    // A scalar is broadcast to any shape.
    let dy = match dy.shape() {
        [] => dy,
        found if same(found, &unreduced) => dy,
        _ => dy.reshape(unreduced),
    };
    let x = || x.as_ref().unwrap_or_else(|| unreachable!("it was kept for this rule"));
    Ok(match op {
        Reduce::Sum => dy.rebroadcast(shape),
        Reduce::Mean => (dy / group(shape, axes) as f64).rebroadcast(shape),
        Reduce::Prod => dy * product_of_others(x(), axes)?,
        // Equal extremes share the gradient, as do several NaN; the others get 0, whatever the gradient.
        Reduce::Max | Reduce::Min => {
            let (x, axes) = (x(), signed(axes));
            let best = T::reduce(op, &x.alias(), &axes, true, Location::caller())?;
            let is_best = |x: T, best: T| x == best || x.is_nan() && best.is_nan();
            let hits = x.zip_values("extreme", &best, is_best);
            let count = hits.cast::<T>().sum_axes_keep(&axes);
            hits.where_else(dy / count, T::ZERO)
        }
    })
}

#[track_caller]
pub(super) fn grouped<T: Element>(x: &Tensor<T>, axes: &[usize]) -> (Tensor<T>, Vec<usize>) {
    let (order, lengths) = grouping(x.shape(), axes);
    (x.permute(&signed(&order)).reshape(lengths), order)
}

/// Returns the order that moves `axes` behind the others, and the lengths with `axes` as one axis.
pub(super) fn grouping(shape: &[usize], axes: &[usize]) -> (Vec<usize>, Shape) {
    let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
    let mut lengths = without(shape, axes);
    lengths.push(group(shape, axes));
    (kept.chain(axes.iter().copied()).collect(), lengths)
}

pub(super) fn without(shape: &[usize], axes: &[usize]) -> Shape {
    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect()
}

/// Returns for each element the product of the others along `axes`; correct even if some are zero.
fn product_of_others<T: Float>(x: &Tensor<T>, axes: &[usize]) -> Result<Tensor<T>> {
    let (flat, order) = grouped(x, axes);
    let n = group(x.shape(), axes);
    let before = |x: &Tensor<T>| {
        let mut one = x.shape_owned();
        one[order.len() - axes.len()] = n.min(1);
        let products = x.narrow(-1, 0, n.saturating_sub(1)).cumprod(-1);
        Tensor::try_concat(&[&Tensor::ones(one), &products], -1)
    };
    let others = before(&flat)? * before(&flat.flip(-1))?.flip(-1);
    let lengths: Shape = order.iter().map(|&axis| x.shape()[axis]).collect();
    others.try_reshape(lengths)?.try_permute(&inverse(&order))
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $op:ident $verb:literal $name:ident $axes:ident $keep:ident $try:ident $of_rows:tt;)*) => {
        /// # Reductions
        ///
        /// Along given axes (`1`, `[0, -1]`, `..`: see [`IntoAxes`]), or over all elements. Sums of floats
        /// are pairwise: rounding errors grow with the logarithm of the length. Those of integers are exact,
        /// or an error.
        impl<T: Numeric> Tensor<T> {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name(&self) -> Tensor<T> {
                    expect(T::reduce(Reduce::$op, self, &[], false, Location::caller()))
                }

                #[doc = concat!($verb, " along `axes`, which are removed; all of them if none is given.")]
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
                #[doc = concat!("assert_eq!(x.", stringify!($axes), "(0).to_vec(), ", stringify!($of_rows), ");")]
                /// ```
                ///
                /// # Panics
                ///
                #[doc = concat!("If an axis does not exist or is named twice, and where else [`Tensor::",
                    stringify!($try), "`] returns an error.")]
                #[track_caller]
                pub fn $axes(&self, axes: impl IntoAxes) -> Tensor<T> {
                    expect(T::reduce(Reduce::$op, self, axes.as_axes(), false, Location::caller()))
                }

                #[doc = concat!($verb, " along `axes`, which stay with length 1.")]
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
                #[doc = concat!("assert_eq!(x.", stringify!($keep), "(0).shape(), [1, 3]);")]
                /// ```
                ///
                /// # Panics
                ///
                #[doc = concat!("If [`Tensor::", stringify!($try), "`] returns an error.")]
                #[track_caller]
                pub fn $keep(&self, axes: impl IntoAxes) -> Tensor<T> {
                    expect(T::reduce(Reduce::$op, self, axes.as_axes(), true, Location::caller()))
                }

                #[doc = concat!(
                    "[`", stringify!($axes), "`](Self::", stringify!($axes), "), or [`", stringify!($keep),
                    "`](Self::", stringify!($keep), ") if `keep`, with an error instead of a panic.",
                )]
                ///
                /// ```
                /// use autograd_core::{Error, Tensor};
                ///
                /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
                #[doc = concat!("assert_eq!(x.", stringify!($try), "(0, true)?.to_vec(), ", stringify!($of_rows), ");")]
                #[doc = concat!("assert!(matches!(x.", stringify!($try), "(2, true), Err(Error::Axis { .. })));")]
                /// # Ok::<(), autograd_core::Error>(())
                /// ```
                ///
                /// # Errors
                ///
                /// [`Error::Axis`] if an axis does not exist or is named twice; [`Error::Overflow`] if an integer type
                /// cannot hold a sum or product; [`Error::Shape`] for the greatest or least of no elements (their sum
                /// is 0, their product 1).
                #[track_caller]
                pub fn $try(&self, axes: impl IntoAxes, keep: bool) -> Result<Tensor<T>> {
                    T::reduce(Reduce::$op, self, axes.as_axes(), keep, Location::caller())
                }
            )*
        }
    };
}

reductions! {
    /// Returns the sum of all elements as a scalar.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let bytes = Tensor::from([200_u8, 100]);
    /// assert_eq!(bytes.cast::<i64>().sum().item(), 300);
    /// assert!(bytes.try_sum(&[], false).is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// If the element type is an integer type and cannot hold the sum.
    Sum "The sum" sum sum_axes sum_axes_keep try_sum [5.0, 7.0, 9.0];
    /// Returns the product of all elements as a scalar. The gradient is `dy` times the product of the others.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([2.0, 3.0, 4.0]).prod().item(), 24.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If the element type is an integer type and cannot hold the product.
    Prod "The product" prod prod_axes prod_axes_keep try_prod [4.0, 10.0, 18.0];
    /// Returns the greatest element as a scalar; NaN if any element is NaN. Equal ones share the gradient.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0, 3.0, 2.0]).max().item(), 3.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If there are no elements.
    Max "The greatest element" max max_axes max_axes_keep try_max [4.0, 5.0, 6.0];
    /// Returns the least element as a scalar; NaN if any element is NaN. Equal ones share the gradient.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0, 3.0, 2.0]).min().item(), 1.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If there are no elements.
    Min "The least element" min min_axes min_axes_keep try_min [1.0, 2.0, 3.0];
}

/// # Means
///
/// Along given axes (see [`IntoAxes`]), or over all elements. Integers need a cast: `x.cast::<f64>().mean()`.
impl<T: Element> Tensor<T> {
    /// Returns the mean of all elements, `sum(x) / n`, as a scalar; NaN if there are none. The gradient is `dy / n`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.mean().item(), 2.5);
    /// assert_eq!(x.mean_axes(0).to_vec(), [2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn mean(&self) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(T::reduce(Reduce::Mean, self, &[], false, Location::caller()))
    }

    /// Returns the mean along `axes`, which are removed; along all axes if none is given.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.mean_axes(1).to_vec(), [2.0, 5.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`Tensor::try_mean`] returns an error.
    #[track_caller]
    pub fn mean_axes(&self, axes: impl IntoAxes) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(T::reduce(Reduce::Mean, self, axes.as_axes(), false, Location::caller()))
    }

    /// Returns the mean along `axes`, which stay with length 1.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.mean_axes_keep(1).shape(), [2, 1]);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`Tensor::try_mean`] returns an error.
    #[track_caller]
    pub fn mean_axes_keep(&self, axes: impl IntoAxes) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(T::reduce(Reduce::Mean, self, axes.as_axes(), true, Location::caller()))
    }

    /// [`mean_axes`](Self::mean_axes), or [`mean_axes_keep`](Self::mean_axes_keep) if `keep`, with an error instead of
    /// a panic.
    ///
    /// ```
    /// use autograd_core::{Error, Tensor};
    ///
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.try_mean(1, true)?.to_vec(), [2.0, 5.0]);
    /// assert!(matches!(x.try_mean(2, true), Err(Error::Axis { .. })));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Axis`] if an axis does not exist or is named twice.
    #[track_caller]
    pub fn try_mean(&self, axes: impl IntoAxes, keep: bool) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        T::reduce(Reduce::Mean, self, axes.as_axes(), keep, Location::caller())
    }
}

/// # Reductions of masks
impl Tensor<bool> {
    /// Whether any element is true; false for no elements.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert!(Tensor::from([false, true]).any());
    /// ```
    #[track_caller]
    pub fn any(&self) -> bool {
        self.is_read("any");
        self.read().view().iter().any(|&b| b)
    }

    /// Whether all elements are true; true for no elements.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert!(!Tensor::from([false, true]).all());
    /// ```
    #[track_caller]
    pub fn all(&self) -> bool {
        self.is_read("all");
        self.read().view().iter().all(|&b| b)
    }

    pairs! {
        /// Whether any element is true along `axes`, which are removed; of all if none is given. False for no
        /// elements.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let mask = Tensor::from([[true, false], [true, true]]);
        /// assert_eq!(mask.any_axes(&[1]).to_vec(), [true, true]);
        /// assert_eq!(mask.all_axes(&[1]).to_vec(), [false, true]);
        /// ```
        #[doc(alias = "any")]
        pub fn any_axes(&self, axes: impl IntoAxes) -> Tensor<bool>,
            Panics if "an axis does not exist or is named twice" {
            expect(check_axes("any_axes", axes.as_axes(), self.ndim()));
            self.cast::<i64>().sum_axes(axes).gt_scalar(0_i64)
        }

        /// Whether all elements are true along `axes`, which are removed; of all if none is given. True for
        /// no elements.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[true, true], [false, true]]);
        /// assert_eq!(x.all_axes(1).to_vec(), [true, false]);
        /// ```
        #[doc(alias = "all")]
        pub fn all_axes(&self, axes: impl IntoAxes) -> Tensor<bool>,
            Panics if "an axis does not exist or is named twice" {
            expect(check_axes("all_axes", axes.as_axes(), self.ndim()));
            self.not().cast::<i64>().sum_axes(axes).eq_scalar(0_i64)
        }
    }
}

#[track_caller]
fn restore_axes<T: Element>(reduced: Tensor<T>, axes: &[isize], rank: usize) -> Tensor<T> {
    let positions = expect(check_axes("reshape", axes, rank));
    reduced.unsqueeze_axes(&signed(&positions))
}

macro_rules! keep_forms {
    ($([$($of:tt)*] $element:ty, like $example:literal: $(
        $name:ident $reduce:ident $of_what:literal ($($argument:ident: $type:ty)?);
    )*)*) => {$(
        /// # Reductions that keep their axes
        impl$($of)* Tensor<$element> {
            $(
                #[doc = concat!($of_what, " along `axes`, which stay with length 1: see [`Tensor::", stringify!($reduce), "`].")]
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                #[doc = concat!("let x = Tensor::<", $example, ">::ones([2, 3]);")]
                $(#[doc = concat!("let ", stringify!($argument), " = 0;")])?
                #[doc = concat!("let y = x.", stringify!($name), "(1", $(", ", stringify!($argument),)? ");")]
                #[doc = concat!("let removed = x.", stringify!($reduce), "(1", $(", ", stringify!($argument),)? ");")]
                /// assert_eq!((y.shape(), y.to_vec()), (&[2, 1][..], removed.to_vec()));
                /// ```
                ///
                /// # Panics
                ///
                #[doc = concat!("As [`Tensor::", stringify!($reduce), "`].")]
                #[track_caller]
                pub fn $name(&self, axes: impl IntoAxes $(, $argument: $type)?) -> Tensor<$element> {
                    let axes = axes.as_axes();
                    restore_axes(self.$reduce(axes $(, $argument)?), axes, self.ndim())
                }
            )*
        }
    )*};
}

keep_forms! {
    [<T: Float>] T, like "f64":
    logsumexp_keep logsumexp "`ln(sum(exp(x)))`" ();
    var_axes_keep var_axes "The variance" (correction: usize);
    std_axes_keep std_axes "The standard deviation" (correction: usize);
    [<T: Numeric>] T, like "f64":
    median_axes_keep median_axes "The median" ();
    [] bool, like "bool":
    any_axes_keep any_axes "Whether any element is true" ();
    all_axes_keep all_axes "Whether all elements are true" ();
}
