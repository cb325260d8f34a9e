//! One element of a vector loop, for writing formulas once.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::math::Math;

/// A number whose methods are those of [`Math`] under their plain names, and which takes literals
/// on either side: `dy * (1.0 - y * y)`.
///
/// `FMA` is what [`Kernel::run`](super::simd::Kernel::run) was given. With `LARGE`, sin, cos and
/// tan take any angle but are calls; without it they give NaN beyond
/// [`ANGLE_MAX`](super::math::ANGLE_MAX).
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lane<T, const FMA: bool, const LARGE: bool = false>(pub T);

impl<T: Math, const FMA: bool, const LARGE: bool> From<f64> for Lane<T, FMA, LARGE> {
    #[inline(always)]
    fn from(value: f64) -> Self {
        Self(T::lit(value))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: Math, const FMA: bool, const LARGE: bool> $trait for Lane<T, FMA, LARGE> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(self.0.$method(other.0))
            }
        }

        impl<T: Math, const FMA: bool, const LARGE: bool> $trait<f64> for Lane<T, FMA, LARGE> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: f64) -> Self {
                Self(self.0.$method(T::lit(other)))
            }
        }

        impl<T: Math, const FMA: bool, const LARGE: bool> $trait<Lane<T, FMA, LARGE>> for f64 {
            type Output = Lane<T, FMA, LARGE>;

            #[inline(always)]
            fn $method(self, other: Lane<T, FMA, LARGE>) -> Lane<T, FMA, LARGE> {
                Lane(T::lit(self).$method(other.0))
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<T: Math, const FMA: bool, const LARGE: bool> Neg for Lane<T, FMA, LARGE> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

// The four comparisons are spelled out: those made from `partial_cmp` do not always vectorise.
macro_rules! comparisons {
    ($($method:ident)*) => {
        impl<T: Math, const FMA: bool, const LARGE: bool> PartialEq for Lane<T, FMA, LARGE> {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        impl<T: Math, const FMA: bool, const LARGE: bool> PartialOrd for Lane<T, FMA, LARGE> {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.0.partial_cmp(&other.0)
            }

            $(
                #[inline(always)]
                fn $method(&self, other: &Self) -> bool {
                    self.0.$method(&other.0)
                }
            )*
        }

        impl<T: Math, const FMA: bool, const LARGE: bool> PartialEq<f64> for Lane<T, FMA, LARGE> {
            #[inline(always)]
            fn eq(&self, other: &f64) -> bool {
                self.0 == T::lit(*other)
            }
        }

        impl<T: Math, const FMA: bool, const LARGE: bool> PartialOrd<f64> for Lane<T, FMA, LARGE> {
            #[inline(always)]
            fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
                self.0.partial_cmp(&T::lit(*other))
            }

            $(
                #[inline(always)]
                fn $method(&self, other: &f64) -> bool {
                    self.0.$method(&T::lit(*other))
                }
            )*
        }
    };
}

comparisons! { lt le gt ge }

macro_rules! functions {
    ($($method:ident $function:ident;)*) => {
        /// The functions of [`Math`].
        #[allow(dead_code, reason = "a complete set, whichever part of it the engine uses today")]
        impl<T: Math, const FMA: bool, const LARGE: bool> Lane<T, FMA, LARGE> {
            $(
                #[inline(always)]
                pub(crate) fn $method(self) -> Self {
                    Self(self.0.$function::<FMA>())
                }
            )*
        }
    };
}

functions! {
    exp v_exp;
    exp_m1 v_exp_m1;
    ln v_ln;
    ln_1p v_ln_1p;
    log2 v_log2;
    log10 v_log10;
    tanh v_tanh;
    sigmoid v_sigmoid;
    softplus v_softplus;
    erf v_erf;
    asin v_asin;
    acos v_acos;
    atan v_atan;
    sinh v_sinh;
    cosh v_cosh;
    sqrt v_sqrt;
    rsqrt v_rsqrt;
    recip v_recip;
    abs v_abs;
    signum v_signum;
    floor v_floor;
    ceil v_ceil;
    round v_round;
    trunc v_trunc;
}

#[allow(dead_code, reason = "a complete set, whichever part of it the engine uses today")]
impl<T: Math, const FMA: bool, const LARGE: bool> Lane<T, FMA, LARGE> {
    #[inline(always)]
    pub(crate) fn sin(self) -> Self {
        Self(if LARGE { self.0.v_sin_large() } else { self.0.v_sin::<FMA>() })
    }

    #[inline(always)]
    pub(crate) fn cos(self) -> Self {
        Self(if LARGE { self.0.v_cos_large() } else { self.0.v_cos::<FMA>() })
    }

    #[inline(always)]
    pub(crate) fn tan(self) -> Self {
        Self(if LARGE { self.0.v_tan_large() } else { self.0.v_tan::<FMA>() })
    }

    /// x · x.
    #[inline(always)]
    pub(crate) fn square(self) -> Self {
        self * self
    }

    /// x to a whole power by repeated squaring, unrolled where `n` is a literal.
    #[inline(always)]
    pub(crate) fn powi(self, n: i32) -> Self {
        let mut power = Self::from(1.0);
        let mut square = self;
        let mut left = n.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                power = power * square;
            }
            square = square * square;
            left >>= 1;
        }
        if n < 0 { power.recip() } else { power }
    }

    /// x to the power y; see [`Math::v_pow`].
    #[inline(always)]
    pub(crate) fn pow(self, y: impl Into<Self>) -> Self {
        Self(self.0.v_pow::<FMA>(y.into().0))
    }

    /// The larger one; NaN if either is.
    #[inline(always)]
    pub(crate) fn max(self, other: impl Into<Self>) -> Self {
        Self(self.0.v_max::<FMA>(other.into().0))
    }

    /// The smaller one; NaN if either is.
    #[inline(always)]
    pub(crate) fn min(self, other: impl Into<Self>) -> Self {
        Self(self.0.v_min::<FMA>(other.into().0))
    }

    /// x · a + b, in one rounding if `FMA`.
    #[inline(always)]
    pub(crate) fn mul_add(self, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self(self.0.v_mul_add::<FMA>(a.into().0, b.into().0))
    }

    /// 1 where x > 0, else 0.
    #[inline(always)]
    pub(crate) fn step(self) -> Self {
        Self(T::v_select(self > 0.0, T::lit(1.0), T::lit(0.0)))
    }

    /// x where x > 0, else 0; NaN stays.
    #[inline(always)]
    pub(crate) fn relu(self) -> Self {
        Self(T::v_select(self.0 < T::lit(0.0), T::lit(0.0), self.0))
    }

    /// x where `mask` holds, else `other`.
    #[inline(always)]
    pub(crate) fn select(self, mask: bool, other: impl Into<Self>) -> Self {
        Self(T::v_select(mask, self.0, other.into().0))
    }
}
