//! The number of a formula.

use std::cmp::Ordering;
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign,
};

use super::functions::{binary_functions, functions};
use super::lane::{Condition, Lane};

// Documented in autograd-core, which re-exports it, as is [`Mask`].
#[derive(Clone, Copy)]
#[must_use = "a formula only has the effect of what it returns"]
pub struct Real<L: Lane>(pub(crate) L);

#[must_use = "a mask only has the effect of its `select`"]
pub struct Mask<L: Lane>(pub(crate) L::Bool);

impl<L: Lane> Clone for Mask<L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Lane> Copy for Mask<L> {}

// They stand for many elements.
impl<L: Lane> std::fmt::Debug for Real<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Real")
    }
}

impl<L: Lane> std::fmt::Debug for Mask<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl<L: Lane> From<f64> for Real<L> {
    #[inline(always)]
    fn from(value: f64) -> Self {
        Self(L::lit(value))
    }
}

impl<L: Lane> From<i32> for Real<L> {
    #[inline(always)]
    fn from(value: i32) -> Self {
        Self::from(f64::from(value))
    }
}

impl<L: Lane> From<bool> for Mask<L> {
    #[inline(always)]
    fn from(holds: bool) -> Self {
        Self(L::Bool::known(holds))
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $a:ident: $left:ty, $b:ident: $right:ty => $value:expr) => {
        impl<L: Lane> $trait<$right> for $left {
            type Output = Real<L>;

            #[inline(always)]
            fn $method(self, $b: $right) -> Real<L> {
                let $a = self;
                $value
            }
        }
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        operator!($trait $method a: Real<L>, b: Real<L> => Real(a.0.$method(b.0)));
        operator!($trait $method a: Real<L>, b: f64 => Real(a.0.$method(L::lit(b))));
        operator!($trait $method a: f64, b: Real<L> => Real(L::lit(a).$method(b.0)));
        operator!($trait $method a: Real<L>, b: &f64 => a.$method(*b));
        operator!($trait $method a: &f64, b: Real<L> => (*a).$method(b));
        operator!($trait $method a: Real<L>, b: i32 => a.$method(f64::from(b)));
        operator!($trait $method a: i32, b: Real<L> => f64::from(a).$method(b));

        impl<L: Lane, R> $assign<R> for Real<L>
        where
            Self: $trait<R, Output = Self>,
        {
            #[inline(always)]
            fn $assign_method(&mut self, other: R) {
                *self = $trait::$method(*self, other);
            }
        }
    )*};
}

operators! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
}

// Documented in autograd-core. No type implements it, so that the compiler shows this message.
#[diagnostic::on_unimplemented(
    message = "a formula cannot branch on a number: it is computed for many elements at once",
    label = "write `x.lt(..)`, `le`, `gt`, `ge`, `eq` or `ne`, and `.select(a, b)` in place of `if`",
    note = "`if x > 0.0 {{ a }} else {{ b }}` is written `x.gt(0.0).select(a, b)`"
)]
pub trait PlainNumber {}

impl<L: Lane, R: PlainNumber> PartialEq<R> for Real<L> {
    fn eq(&self, _: &R) -> bool {
        unreachable!("nothing implements the bound")
    }
}

impl<L: Lane, R: PlainNumber> PartialOrd<R> for Real<L> {
    fn partial_cmp(&self, _: &R) -> Option<Ordering> {
        unreachable!("nothing implements the bound")
    }
}

// Documented in autograd-core, as is [`WholeTensor`]. No type implements them either.
#[diagnostic::on_unimplemented(
    message = "`^` is not a power in Rust, but the exclusive or of masks",
    label = "write `x * x`, or `x.powi(2)` in a formula and `x.pow(2)` on a tensor"
)]
pub trait Exponent {}

impl<L: Lane, R: Exponent> BitXor<R> for Real<L> {
    type Output = Self;

    fn bitxor(self, _: R) -> Self {
        unreachable!("nothing implements the bound")
    }
}

#[diagnostic::on_unimplemented(
    message = "a formula computes each element by itself, so it has no sums or means over elements",
    label = "write it as an op on tensors, or reduce the formula's result",
    note = "`#[py_layer(elementwise, reduce = sum)]` sums what the formula returns"
)]
pub trait WholeTensor {}

#[doc(hidden)]
impl<L: Lane> Real<L> {
    pub fn sum(self) -> Self
    where
        Self: WholeTensor,
    {
        self
    }

    pub fn mean(self) -> Self
    where
        Self: WholeTensor,
    {
        self
    }
}

impl<L: Lane> Neg for Real<L> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.neg())
    }
}

macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident
        [$e32:literal, $e64:literal, $x:literal => $y:literal] $slope:tt;
    )*) => {
        impl<L: Lane> Real<L> {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!("Largest error: ", $e32, " ulp for f32, ", $e64, " for f64.")]
                ///
                /// ```
                /// use autograd_core::{Tensor, assert_close, fuse};
                ///
                #[doc = concat!("let x = Tensor::from([", $x, "]);")]
                #[doc = concat!("let y = fuse([&x], |[x]| x.", stringify!($method), "());")]
                #[doc = concat!("assert_close!(y, Tensor::from([", $y, "]), rtol = 1e-15, atol = 0.0);")]
                /// ```
                #[inline(always)]
                pub fn $method(self) -> Self {
                    Self(self.0.$method())
                }
            )*
        }
    };
}

functions! { methods }

macro_rules! methods_of_two {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident
        [$e32:literal, $e64:literal, $x:literal, $other:literal => $y:literal]
        |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        impl<L: Lane> Real<L> {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!("Largest error: ", $e32, " ulp for f32, ", $e64, " for f64.")]
                ///
                /// ```
                /// use autograd_core::{Tensor, assert_close, fuse};
                ///
                #[doc = concat!("let (x, other) = (Tensor::from([", $x, "]), Tensor::from([", $other, "]));")]
                #[doc = concat!("let y = fuse([&x, &other], |[x, other]| x.", stringify!($number), "(other));")]
                #[doc = concat!("assert_close!(y, Tensor::from([", $y, "]), rtol = 1e-15, atol = 0.0);")]
                /// ```
                #[inline(always)]
                pub fn $number(self, other: impl Into<Self>) -> Self {
                    Self(self.0.$number(other.into().0))
                }
            )*
        }
    };
}

binary_functions! { methods_of_two }

impl<L: Lane> Real<L> {
    /// The natural logarithm: [`Real::ln`] under its name in NumPy, PyTorch and Paddle.
    ///
    /// ```
    /// use autograd_core::{Tensor, assert_close, fuse};
    ///
    /// let x = Tensor::from([1.0, std::f64::consts::E]);
    /// let y = fuse([&x], |[x]| x.log());
    /// assert_close!(y, Tensor::from([0.0, 1.0]));
    /// ```
    #[inline(always)]
    pub fn log(self) -> Self {
        self.ln()
    }

    /// `x * x`.
    ///
    /// The gradient in `f32` is exact at all numbers.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([-3.0, 0.5]);
    /// let y = fuse([&x], |[x]| x.square());
    /// assert_eq!(y.to_vec(), [9.0, 0.25]);
    /// ```
    #[inline(always)]
    pub fn square(self) -> Self {
        self * self
    }

    /// `x` where `x > 0`, else 0; NaN stays. The derivative at 0 is 0.
    ///
    /// The gradient in `f32` is exact at all numbers.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([-3.0, 0.5]);
    /// let y = fuse([&x], |[x]| x.relu());
    /// assert_eq!(y.to_vec(), [0.0, 0.5]);
    /// ```
    #[inline(always)]
    pub fn relu(self) -> Self {
        self.le(0.0).select(0.0, self)
    }

    /// 1 where `x > 0`, else 0; its derivative is 0.
    ///
    /// The gradient in `f32` is exact at all numbers.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([-3.0, 0.0, 0.5]);
    /// let y = fuse([&x], |[x]| x.step());
    /// assert_eq!(y.to_vec(), [0.0, 0.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn step(self) -> Self {
        self.gt(0.0).select(1.0, 0.0)
    }

    /// `x` to an integer power, by multiplications. Largest error: about half an ulp for each of
    /// them.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([2.0, -0.5]);
    /// let y = fuse([&x], |[x]| x.powi(-3));
    /// assert_eq!(y.to_vec(), [0.125, -8.0]);
    /// ```
    #[inline(always)]
    pub fn powi(self, exponent: i32) -> Self {
        if exponent == 0 {
            return Self::from(1.0);
        }
        let mut left = exponent.unsigned_abs();
        let mut square = self;
        while left & 1 == 0 {
            square = square * square;
            left >>= 1;
        }
        let mut power = square;
        left >>= 1;
        while left > 0 {
            square = square * square;
            if left & 1 == 1 {
                power *= square;
            }
            left >>= 1;
        }
        if exponent < 0 { power.recip() } else { power }
    }

    /// `x` to the power `exponent`, with the special cases of `f64::powf`: the power is 1 if the
    /// exponent is 0 or `x` is 1, and a negative `x` needs an integer exponent. Largest error: 0.54
    /// ulp for f32, 0.92 for f64.
    ///
    /// ```
    /// use autograd_core::{Tensor, assert_close, fuse};
    ///
    /// let (x, exponent) = (Tensor::from([2.0, 2.0, 9.0]), Tensor::from([3.0, -1.0, 0.5]));
    /// let y = fuse([&x, &exponent], |[x, exponent]| x.powf(exponent));
    /// assert_close!(y, Tensor::from([8.0, 0.5, 3.0]));
    /// ```
    #[doc(alias = "pow")]
    #[inline(always)]
    pub fn powf(self, exponent: impl Into<Self>) -> Self {
        Self(self.0.pow(exponent.into().0))
    }

    /// The smaller number; NaN if either is NaN. A tie shares the gradient, unless one is a literal.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.min(2.0));
    /// assert_eq!(y.to_vec(), [1.0, 2.0]);
    /// ```
    #[inline(always)]
    pub fn min(self, other: impl Into<Self>) -> Self {
        Self(self.0.min(other.into().0))
    }

    /// The larger number; NaN if either is NaN. A tie shares the gradient, unless one is a literal.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.max(2.0));
    /// assert_eq!(y.to_vec(), [2.0, 3.0]);
    /// ```
    #[inline(always)]
    pub fn max(self, other: impl Into<Self>) -> Self {
        Self(self.0.max(other.into().0))
    }

    /// `x` limited to `low..=high`; NaN stays. The derivative is 1 on the bounds.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([-2.0, 0.5, 3.0]);
    /// let y = fuse([&x], |[x]| x.clamp(0.0, 1.0));
    /// assert_eq!(y.to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    #[inline(always)]
    pub fn clamp(self, low: impl Into<Self>, high: impl Into<Self>) -> Self {
        let (low, high) = (low.into(), high.into());
        self.lt(low).select(low, self.gt(high).select(high, self))
    }

    /// `self * a + b`, with a single rounding if the CPU has an instruction for it.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// let y = fuse([&x], |[x]| x.mul_add(10.0, 3.0));
    /// assert_eq!(y.to_vec(), [13.0, 23.0]);
    /// ```
    #[inline(always)]
    pub fn mul_add(self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self(self.0.mul_add(a.into().0, b.into().0))
    }

    /// Where `x < other`.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.lt(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [1.0, 0.0, 0.0]);
    /// ```
    #[inline(always)]
    pub fn lt(self, other: impl Into<Self>) -> Mask<L> {
        Mask(self.0.less(other.into().0))
    }

    /// Where `x <= other`.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.le(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [1.0, 1.0, 0.0]);
    /// ```
    #[inline(always)]
    pub fn le(self, other: impl Into<Self>) -> Mask<L> {
        Mask(self.0.less_or_equal(other.into().0))
    }

    /// Where `x > other`.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.gt(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [0.0, 0.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn gt(self, other: impl Into<Self>) -> Mask<L> {
        Mask(other.into().0.less(self.0))
    }

    /// Where `x >= other`.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.ge(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [0.0, 1.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn ge(self, other: impl Into<Self>) -> Mask<L> {
        Mask(other.into().0.less_or_equal(self.0))
    }

    /// Where `x == other`.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.eq(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [0.0, 1.0, 0.0]);
    /// ```
    #[inline(always)]
    pub fn eq(self, other: impl Into<Self>) -> Mask<L> {
        Mask(self.0.equal(other.into().0))
    }

    /// Where `x != other`; NaN differs from itself.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.ne(2.0).select(1.0, 0.0));
    /// assert_eq!(y.to_vec(), [1.0, 0.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn ne(self, other: impl Into<Self>) -> Mask<L> {
        !self.eq(other)
    }

    /// Where `x` is NaN.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([f64::NAN, 2.0]);
    /// let y = fuse([&x], |[x]| x.is_nan().select(0.0, x));
    /// assert_eq!(y.to_vec(), [0.0, 2.0]);
    /// ```
    #[inline(always)]
    pub fn is_nan(self) -> Mask<L> {
        self.ne(self)
    }
}

impl<L: Lane> Mask<L> {
    /// `a` where the mask holds, else `b`; the derivative is that of the selected number.
    ///
    /// ```
    /// use autograd_core::{Tensor, fuse};
    ///
    /// let x = Tensor::from([-2.0, 3.0]);
    /// let y = fuse([&x], |[x]| x.gt(0.0).select(x, 0.1 * x));
    /// assert_eq!(y.to_vec(), [-0.2, 3.0]);
    /// ```
    #[inline(always)]
    pub fn select(self, a: impl Into<Real<L>>, b: impl Into<Real<L>>) -> Real<L> {
        Real(L::select(self.0, a.into().0, b.into().0))
    }
}

impl<L: Lane> Not for Mask<L> {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.not())
    }
}

macro_rules! logic {
    ($($trait:ident $method:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl<L: Lane> $trait for Mask<L> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($body)
            }
        }
    )*};
}

logic! {
    BitAnd bitand |a, b| a.and(b);
    BitOr bitor |a, b| a.or(b);
    BitXor bitxor |a, b| a.or(b).and(a.and(b).not());
}
