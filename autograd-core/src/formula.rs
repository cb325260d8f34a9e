//! The kernels' elementwise formulas, with the documentation of their public part.

pub(crate) use autograd_kernels::formula::*;

#[doc(inline)]
pub use autograd_kernels::formula::Lane;

/// A boolean of an elementwise formula: the result of a comparison of [`Real`], or a bool or
/// integer input (`#[stop_gradient] keep: Mask<L>`). Masks are combined by `&`, `|`, `^` and `!`,
/// and used by [`select`](Mask::select).
///
/// ```
/// use autograd_core::Tensor;
///
/// let x = Tensor::from(vec![-1.0, 0.5, 3.0]);
/// let y = autograd_core::fuse([&x], |[x]| (x.gt(0.0) & x.lt(1.0)).select(x, 0.0));
/// assert_eq!(y.to_vec(), [0.0, 0.5, 0.0]);
/// ```
#[doc(inline)]
pub use autograd_kernels::formula::Mask;

/// A number of an elementwise formula, which is straight-line code over `Real<L>`: arithmetic with
/// `f64` literals, constants and parameters on either side, the functions below, comparisons, which
/// give a [`Mask`], and [`Mask::select`] in place of a branch. It is compiled for every element
/// type, vector width and order of derivative that is needed.
///
/// The largest errors are given in units in the last place of the exact result, over all
/// arguments and instruction sets. NaN gives NaN, odd functions keep the sign of zero, and
/// subnormal numbers are as accurate as others.
///
/// A function of your own that a formula calls must be generic too, and `#[inline(always)]`: without
/// inlining it is slow.
///
/// ```
/// use autograd_core::prelude::*;
///
/// #[inline(always)]
/// fn cube<L: Lane>(x: Real<L>) -> Real<L> {
///     x * x * x
/// }
///
/// let x = Tensor::from(vec![0.0, 1.0, 2.0]);
/// let y = autograd_core::fuse([&x], |[x]| 0.5 * cube(x) + 1.0);
/// assert_eq!(y.to_vec(), [1.0, 1.5, 5.0]);
/// ```
#[doc(inline)]
pub use autograd_kernels::formula::Real;

/// The numbers of the closure of [`fuse`](fn@crate::fuse): steps of the program that it writes.
#[doc(inline)]
pub use autograd_kernels::formula::Traced;

/// What `<`, `>` and `==` compare. A [`Real`] is compared by its methods, so that no type implements this.
#[doc(inline)]
pub use autograd_kernels::formula::PlainNumber;

#[doc(hidden)]
pub use autograd_kernels::formula::{Exponent, WholeTensor};
