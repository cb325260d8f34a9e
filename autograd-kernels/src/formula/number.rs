//! One number of an element type: what a loop that becomes vector code computes with.

use super::functions::functions;
use super::lane::{Lane, Sealed};
use super::real::Real;
use crate::array::math::{ANGLE_MAX, Math};

/// A number, and whether an angle beyond [`ANGLE_MAX`] went into it: then it is not to be used.
/// In a formula without sines the flag is a constant and costs nothing.
///
/// `FMA` is what [`Kernel::run`](crate::array::simd::Kernel::run) was given.
#[derive(Clone, Copy, Debug)]
pub struct Number<T, const FMA: bool> {
    pub(super) value: T,
    pub(super) beyond: bool,
}

/// A condition on numbers, with their flag.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    pub(super) holds: bool,
    pub(super) beyond: bool,
}

impl<T: Math, const FMA: bool> Number<T, FMA> {
    #[inline(always)]
    pub(super) fn new(value: T) -> Self {
        Self { value, beyond: false }
    }

    #[inline(always)]
    fn joined(self, other: Self, value: T) -> Self {
        Self { value, beyond: self.beyond | other.beyond }
    }

    #[inline(always)]
    fn compared(self, other: Self, holds: bool) -> Condition {
        Condition { holds, beyond: self.beyond | other.beyond }
    }
}

impl<const FMA: bool> Real<Number<f64, FMA>> {
    /// The number itself.
    #[doc(hidden)]
    pub fn to_f64(self) -> f64 {
        self.0.value
    }
}

impl<T, const FMA: bool> Sealed for Number<T, FMA> {}

/// Whether an angle needs another reduction than the straight-line one.
macro_rules! beyond {
    (v_sin, $x:expr) => {
        $x.magnitude() > T::lit(ANGLE_MAX)
    };
    (v_cos, $x:expr) => {
        $x.magnitude() > T::lit(ANGLE_MAX)
    };
    (v_tan, $x:expr) => {
        $x.magnitude() > T::lit(ANGLE_MAX)
    };
    ($other:ident, $x:expr) => {
        false
    };
}

macro_rules! number {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        #[diagnostic::do_not_recommend]
        impl<T: Math, const FMA: bool> Lane for Number<T, FMA> {
            type Bool = Condition;

            #[inline(always)]
            fn lit(value: f64) -> Self {
                Self::new(T::lit(value))
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.joined(other, self.value + other.value)
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.joined(other, self.value - other.value)
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.joined(other, self.value * other.value)
            }

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self.joined(other, self.value / other.value)
            }

            #[inline(always)]
            fn neg(self) -> Self {
                Self { value: -self.value, ..self }
            }

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let value = self.value.v_mul_add::<FMA>(a.value, b.value);
                Self { value, beyond: self.beyond | a.beyond | b.beyond }
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                self.joined(other, self.value.v_min::<FMA>(other.value))
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.joined(other, self.value.v_max::<FMA>(other.value))
            }

            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                self.joined(exponent, self.value.v_pow::<FMA>(exponent.value))
            }

            $(
                #[inline(always)]
                fn $method(self) -> Self {
                    let beyond = self.beyond | beyond!($kernel, self.value);
                    Self { value: self.value.$kernel::<FMA>(), beyond }
                }
            )*

            #[inline(always)]
            fn less(self, other: Self) -> Condition {
                self.compared(other, self.value < other.value)
            }

            #[inline(always)]
            fn less_or_equal(self, other: Self) -> Condition {
                self.compared(other, self.value <= other.value)
            }

            #[inline(always)]
            fn equal(self, other: Self) -> Condition {
                self.compared(other, self.value == other.value)
            }

            #[inline(always)]
            fn known(holds: bool) -> Condition {
                Condition { holds, beyond: false }
            }

            #[inline(always)]
            fn not(mask: Condition) -> Condition {
                Condition { holds: !mask.holds, ..mask }
            }

            #[inline(always)]
            fn and(a: Condition, b: Condition) -> Condition {
                Condition { holds: a.holds & b.holds, beyond: a.beyond | b.beyond }
            }

            #[inline(always)]
            fn or(a: Condition, b: Condition) -> Condition {
                Condition { holds: a.holds | b.holds, beyond: a.beyond | b.beyond }
            }

            #[inline(always)]
            fn select(mask: Condition, a: Self, b: Self) -> Self {
                Self {
                    value: T::v_select(mask.holds, a.value, b.value),
                    beyond: mask.beyond | a.beyond | b.beyond,
                }
            }
        }
    };
}

functions! { number }
