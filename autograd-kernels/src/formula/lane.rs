//! Number types of formulas: a number, a number and its slope, or a step of a program.

use super::functions::{binaries, conditions, functions};

pub trait Condition: Copy {
    fn known(holds: bool) -> Self;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
}

macro_rules! one_number {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        $(fn $method(self) -> Self;)*
    };
}

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        $(fn $number(self, other: Self) -> Self;)*
    };
}

macro_rules! comparisons {
    ($($condition:ident $compare:ident |$a:ident, $b:ident| $holds:expr;)*) => {
        $(fn $condition(self, other: Self) -> Self::Bool;)*
    };
}

/// The operations of a lane; the trait limits [`Lane`] to the types of this crate.
pub trait Compute: Copy + 'static {
    type Bool: Condition;
    fn lit(value: f64) -> Self;
    fn neg(self) -> Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn select(mask: Self::Bool, a: Self, b: Self) -> Self;
    functions! { one_number }
    binaries! { two_numbers }
    conditions! { comparisons }
}

/// A number type that formulas are computed with. A formula is generic over its lane, `fn f<L:
/// Lane>(x: Real<L>) -> Real<L>`, because it is compiled for several: a number of an element type
/// in a vector loop, a number with its slope for the derivative, and a step of a program for higher
/// orders. The trait is implemented in this crate only; [`Real`](crate::formula::Real) and
/// [`Mask`](crate::formula::Mask) have the methods.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lane: a formula is not written for one element type",
    label = "write `Real<L>` with `L: Lane`",
    note = "a formula is generic: `fn forward<L: Lane>(x: Real<L>) -> Real<L>`"
)]
pub trait Lane: Compute {}
