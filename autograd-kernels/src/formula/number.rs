//! One number of an element type: the lane of loops that become vector code.

use super::functions::{binaries, conditions, functions};
use super::lane::{Compute, Condition, Lane};
use super::real::Real;
use crate::array::math::{ANGLE_MAX, Math, of_two, select};

/// A number, and whether it depends on an angle beyond [`ANGLE_MAX`], which makes it invalid: a
/// constant in formulas without sines. `FMA`: see [`Kernel::run`](crate::array::simd::Kernel::run).
#[derive(Clone, Copy, Debug)]
pub struct Number<T, const FMA: bool> {
    pub(super) value: T,
    pub(super) invalid: bool,
}

/// A condition on numbers, with the same flag.
#[derive(Clone, Copy, Debug)]
pub struct FlaggedCondition {
    pub(super) holds: bool,
    pub(super) invalid: bool,
}

impl<T: Math, const FMA: bool> Number<T, FMA> {
    #[inline(always)]
    pub(super) fn new(value: T) -> Self {
        Self { value, invalid: false }
    }
}

impl<const FMA: bool> Real<Number<f64, FMA>> {
    #[doc(hidden)]
    pub fn to_f64(self) -> f64 {
        self.0.value
    }
}

/// Whether a kernel takes an angle, which may be too large for it.
const fn takes_angle(kernel: &str) -> bool {
    matches!(kernel.as_bytes(), b"v_sin" | b"v_cos" | b"v_tan")
}

macro_rules! one_number {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        $(
            #[inline(always)]
            fn $method(self) -> Self {
                let invalid = const { takes_angle(stringify!($kernel)) }
                    && self.value.abs() > T::lit(ANGLE_MAX);
                let invalid = self.invalid | invalid;
                Self { value: self.value.$kernel::<FMA>(), invalid }
            }
        )*
    };
}

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        $(
            #[inline(always)]
            fn $number(self, other: Self) -> Self {
                let ($a, $b) = (self.value, other.value);
                Self { value: $value, invalid: self.invalid | other.invalid }
            }
        )*
    };
}

macro_rules! comparisons {
    ($($condition:ident $compare:ident |$a:ident, $b:ident| $holds:expr;)*) => {
        $(
            #[inline(always)]
            fn $condition(self, other: Self) -> FlaggedCondition {
                let ($a, $b) = (self.value, other.value);
                FlaggedCondition { holds: $holds, invalid: self.invalid | other.invalid }
            }
        )*
    };
}

#[diagnostic::do_not_recommend]
impl<T: Math, const FMA: bool> Lane for Number<T, FMA> {}

impl<T: Math, const FMA: bool> Compute for Number<T, FMA> {
    type Bool = FlaggedCondition;

    #[inline(always)]
    fn lit(value: f64) -> Self {
        Self::new(T::lit(value))
    }

    #[inline(always)]
    fn neg(self) -> Self {
        Self { value: -self.value, ..self }
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let value = self.value.fma::<FMA>(a.value, b.value);
        Self { value, invalid: self.invalid | a.invalid | b.invalid }
    }

    #[inline(always)]
    fn select(mask: FlaggedCondition, a: Self, b: Self) -> Self {
        let value = select(mask.holds, a.value, b.value);
        Self { value, invalid: mask.invalid | a.invalid | b.invalid }
    }

    functions! { one_number }
    binaries! { two_numbers }
    conditions! { comparisons }
}

impl Condition for FlaggedCondition {
    #[inline(always)]
    fn known(holds: bool) -> Self {
        Self { holds, invalid: false }
    }

    #[inline(always)]
    fn not(self) -> Self {
        Self { holds: !self.holds, ..self }
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self { holds: self.holds & other.holds, invalid: self.invalid | other.invalid }
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self { holds: self.holds | other.holds, invalid: self.invalid | other.invalid }
    }
}
