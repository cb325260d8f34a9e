//! Selection by masks, reductions of masks, and comparison with a tolerance: all composed of other ops.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::index::place;
use super::{Numeric, Operand, expect, pairs};
use crate::array::shape::{axes as check_axes, broadcast};
use crate::array::{DType, IntoAxes};
use crate::graph::{Scalar, Tensor};

/// # Choices
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// [`Tensor::where_else`] in the order of PyTorch and NumPy.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([-1.0, 2.0]);
        /// assert_eq!(Tensor::where_(&x.gt_scalar(0.0), &x, 0.0).to_vec(), [0.0, 2.0]);
        /// ```
        #[doc(alias = "where_cond")]
        #[doc(alias = "mask_where")]
        pub fn where_(mask: &Tensor<bool>, on: impl Operand<T>, off: impl Operand<T>) -> Tensor<T>,
            Panics if "the three shapes cannot be broadcast together" {
            expect(mask.try_where_else(on, off).map_err(|error| error.called("where_")))
        }

        /// Returns this tensor with `element` where `mask` is true, with broadcasting. The gradient there is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let scores = Tensor::from([1.0, 2.0, 3.0]);
        /// let hidden = Tensor::from([false, true, false]);
        /// assert_eq!(scores.masked_fill(&hidden, f64::NEG_INFINITY).softmax(0).to_vec()[1], 0.0);
        /// ```
        #[doc(alias = "mask_fill")]
        pub fn masked_fill(&self, mask: &Tensor<bool>, element: impl Scalar<T>) -> Tensor<T>,
            Panics if "the shapes cannot be broadcast together" {
            let filled = mask.try_where_else(Tensor::from(element.scalar()), self);
            expect(filled.map_err(|error| error.called("masked_fill")))
        }

        /// Returns the elements where `mask` is true, in row-major order, along one axis. In a trace, the
        /// mask must not depend on the inputs, as the number of elements does.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, -2.0], [-3.0, 4.0]]);
        /// assert_eq!(x.masked_select(&x.gt_scalar(0.0)).to_vec(), [1.0, 4.0]);
        /// ```
        #[doc(alias = "boolean_mask")]
        pub fn masked_select(&self, mask: &Tensor<bool>) -> Tensor<T>,
            Panics if "the shapes cannot be broadcast together" {
            let shape = expect(broadcast("masked_select", self.shape(), mask.shape()));
            let mask = if mask.shape() == &shape[..] { mask } else { &wide(mask, &shape) };
            let x = if self.shape() == &shape[..] { self } else { &self.broadcast_to(shape) };
            x.flatten().index_select(0, &Tensor::from(places(mask)).and_lost(mask))
        }

        /// Whether `|self - other| <= atol + rtol * |other|` for all elements, with broadcasting. Equal
        /// infinities are close; NaN is never close.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([1.0, 2.0]);
        /// assert!(x.allclose(&(&x + 1e-9), 1e-5, 1e-8));
        /// assert!(!x.allclose(&(&x + 1e-3), 1e-5, 1e-8));
        /// ```
        ///
        /// [`assert_close!`](crate::assert_close) says where two tensors differ.
        #[doc(alias = "isclose")]
        #[doc(alias = "all_close")]
        pub fn allclose(&self, other: &Tensor<T>, rtol: f64, atol: f64) -> bool,
            Panics if "the shapes cannot be broadcast together" {
            let (a, b) = (self.detach().cast::<f64>(), other.detach().cast::<f64>());
            a.zip_values("allclose", &b, |a, b| excess(a, b, rtol, atol) <= 0.0).all()
        }
    }
}

/// Returns by how much two numbers exceed the allowed distance; infinite for NaN and unequal infinities.
fn excess(left: f64, right: f64, rtol: f64, atol: f64) -> f64 {
    if left == right {
        return 0.0;
    }
    let by = (left - right).abs() - (atol + rtol * right.abs());
    if by.is_nan() || left.is_infinite() || right.is_infinite() { f64::INFINITY } else { by }
}

fn wide(mask: &Tensor<bool>, shape: &[usize]) -> Tensor<bool> {
    mask.cast::<u8>().broadcast_to(shape).cast()
}

pub(super) fn places(mask: &Tensor<bool>) -> Vec<i64> {
    (0..).zip(mask.to_vec()).filter_map(|(at, on)| on.then_some(at)).collect()
}

/// # Masks
///
/// `&`, `|`, `^` and `!` are [`Tensor::and`], [`Tensor::or`], [`Tensor::xor`] and [`Tensor::not`].
impl Tensor<bool> {
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
        #[doc(alias = "all")]
        pub fn all_axes(&self, axes: impl IntoAxes) -> Tensor<bool>,
            Panics if "an axis does not exist or is named twice" {
            expect(check_axes("all_axes", axes.as_axes(), self.ndim()));
            self.not().cast::<i64>().sum_axes(axes).eq_scalar(0_i64)
        }
    }

    /// Returns the positions of the true elements in row-major order, as indices: `[count, axes]`.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let mask = Tensor::from([[true, false], [false, true]]);
    /// assert_eq!(mask.nonzero().to_vec(), [0, 0, 1, 1]);
    /// ```
    #[doc(alias = "argwhere")]
    pub fn nonzero(&self) -> Tensor<i64> {
        let places = places(self);
        let count = places.len();
        let of_axes = |at: i64| place(at as usize, self.shape()).into_iter().map(|at| at as i64);
        let all: Vec<i64> = places.into_iter().flat_map(of_axes).collect();
        Tensor::from(all).reshape([count, self.ndim()]).and_lost(self)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $name:ident $left:ty, $right:ty;)*) => {$(
        /// Panics if the shapes cannot be broadcast together.
        impl $trait<$right> for $left {
            type Output = Tensor<bool>;

            #[track_caller]
            fn $method(self, other: $right) -> Tensor<bool> {
                let (left, right): (&Tensor<bool>, &Tensor<bool>) = (&self, &other);
                left.$name(right)
            }
        }
    )*};
    ($($trait:ident $method:ident $name:ident;)*) => {
        operators! { $(
            $trait $method $name Tensor<bool>, Tensor<bool>;
            $trait $method $name Tensor<bool>, &Tensor<bool>;
            $trait $method $name &Tensor<bool>, Tensor<bool>;
            $trait $method $name &Tensor<bool>, &Tensor<bool>;
        )* }
    };
}

operators! {
    BitAnd bitand and;
    BitOr bitor or;
    BitXor bitxor xor;
}

impl Not for &Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        Tensor::not(self)
    }
}

impl Not for Tensor<bool> {
    type Output = Tensor<bool>;

    #[track_caller]
    fn not(self) -> Tensor<bool> {
        Tensor::not(&self)
    }
}

/// The two tensors that [`assert_close!`](crate::assert_close) compares.
#[derive(Debug)]
pub struct Close<'a, T: Numeric> {
    left: &'a Tensor<T>,
    right: &'a Tensor<T>,
    rtol: f64,
    atol: f64,
}

impl<'a, T: Numeric> Close<'a, T> {
    /// Creates a comparison with PyTorch's tolerances for the element type.
    pub fn new(left: &'a Tensor<T>, right: &'a Tensor<T>) -> Self {
        let [rtol, atol] = match T::DTYPE {
            DType::Float32 => [1.3e-6, 1e-5],
            DType::Float64 => [1e-7, 1e-7],
            _ => [0.0, 0.0],
        };
        Self { left, right, rtol, atol }
    }

    /// Sets the relative tolerance, a factor of `|right|`.
    #[must_use]
    pub fn rtol(self, rtol: f64) -> Self {
        Self { rtol, ..self }
    }

    /// Sets the absolute tolerance.
    #[must_use]
    pub fn atol(self, atol: f64) -> Self {
        Self { atol, ..self }
    }

    /// Panics if the tensors are not close.
    #[track_caller]
    pub fn check(self, left: &str, right: &str) {
        if let Err(why) = self.compare() {
            panic!("`{left}` is not close to `{right}`: {why}");
        }
    }

    fn compare(&self) -> Result<(), String> {
        let &Self { rtol, atol, .. } = self;
        let [shape, other] = [self.left.shape(), self.right.shape()];
        if shape != other {
            return Err(format!("the shapes are {shape:?} and {other:?}"));
        }
        let [left, right] = [self.left, self.right].map(|t| t.detach().cast::<f64>().to_vec());
        let apart = |(&a, &b): (&f64, &f64)| excess(a, b, rtol, atol);
        let apart: Vec<f64> = left.iter().zip(&right).map(apart).collect();
        let count = apart.iter().filter(|&&by| by > 0.0).count();
        let worst = (0..apart.len()).reduce(|a, b| if apart[b] > apart[a] { b } else { a });
        let Some(worst) = worst.filter(|_| count > 0) else { return Ok(()) };
        let place = place(worst, shape);
        let (a, b) = (left[worst], right[worst]);
        let [plural, verb] = if apart.len() == 1 { ["", "s"] } else { ["s", ""] };
        Err(format!(
            "{count} of {} element{plural} differ{verb} by more than {atol:e} + {rtol:e} * |right|; the worst is at \
             {place:?}: {a:?} and {b:?}, {:e} apart where {:e} is allowed",
            apart.len(),
            (a - b).abs(),
            atol + rtol * b.abs(),
        ))
    }
}

/// Asserts that two tensors have the same shape, and that elements differ by at most `atol + rtol * |right|`.
/// The message says how many do not, and shows the worst. `rtol` and `atol` are 1.3e-6 and 1e-5 for `f32`,
/// 1e-7 for `f64`, as in PyTorch, and 0 for integers. Equal infinities are close; NaN is never close.
///
/// ```
/// use autograd_core::{Tensor, assert_close};
///
/// let x = Tensor::<f32>::from([1.0, 2.0]);
/// assert_close!(x.exp().ln(), x);
/// assert_close!(&x * 1.001, &x, rtol = 1e-2);
/// ```
///
/// ```should_panic
/// # use autograd_core::{Tensor, assert_close};
/// assert_close!(Tensor::from([1.0, 2.0]), Tensor::from([1.0, 2.5]));
/// // .. is not close to ..: 1 of 2 elements differ by more than 1e-7 + 1e-7 * |right|; the worst is at
/// // [1]: 2.0 and 2.5, 5e-1 apart where 3.5e-7 is allowed
/// ```
#[macro_export]
macro_rules! assert_close {
    ($left:expr, $right:expr $(, $tolerance:ident = $value:expr)* $(,)?) => {
        $crate::private::Close::new(&$left, &$right)
            $(.$tolerance($value))*
            .check(::core::stringify!($left), ::core::stringify!($right))
    };
}
