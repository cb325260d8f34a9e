//! What a formula is computed with: one number, a number and its slope, or a step of a program.

use super::functions::functions;

/// Keeps [`Lane`] to the types of this crate.
pub trait Sealed {}

macro_rules! lane {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        /// What a formula is computed with.
        ///
        /// A formula is generic over its lane, `fn f<L: Lane>(x: Real<L>) -> Real<L>`, because it is
        /// compiled for several: a number of an element type in a loop that becomes vector code, a
        /// number with its slope for the derivative, and a step of a program for higher orders.
        /// The trait is implemented in this crate only; [`Real`](crate::formula::Real) and
        /// [`Mask`](crate::formula::Mask) have the methods.
        #[diagnostic::on_unimplemented(
            message = "`{Self}` is not a lane: a formula is not written for one element type",
            label = "write `Real<L>` with `L: Lane`",
            note = "a formula is generic: `fn forward<L: Lane>(x: Real<L>) -> Real<L>`"
        )]
        pub trait Lane: Sealed + Copy + 'static {
            #[doc(hidden)]
            type Bool: Copy;
            #[doc(hidden)]
            fn lit(value: f64) -> Self;
            #[doc(hidden)]
            fn add(self, other: Self) -> Self;
            #[doc(hidden)]
            fn sub(self, other: Self) -> Self;
            #[doc(hidden)]
            fn mul(self, other: Self) -> Self;
            #[doc(hidden)]
            fn div(self, other: Self) -> Self;
            #[doc(hidden)]
            fn neg(self) -> Self;
            /// `self · a + b`
            #[doc(hidden)]
            fn mul_add(self, a: Self, b: Self) -> Self;
            #[doc(hidden)]
            fn min(self, other: Self) -> Self;
            #[doc(hidden)]
            fn max(self, other: Self) -> Self;
            #[doc(hidden)]
            fn pow(self, exponent: Self) -> Self;
            $(
                #[doc(hidden)]
                fn $method(self) -> Self;
            )*
            #[doc(hidden)]
            fn less(self, other: Self) -> Self::Bool;
            #[doc(hidden)]
            fn less_or_equal(self, other: Self) -> Self::Bool;
            #[doc(hidden)]
            fn equal(self, other: Self) -> Self::Bool;
            #[doc(hidden)]
            fn known(holds: bool) -> Self::Bool;
            #[doc(hidden)]
            fn not(mask: Self::Bool) -> Self::Bool;
            #[doc(hidden)]
            fn and(a: Self::Bool, b: Self::Bool) -> Self::Bool;
            #[doc(hidden)]
            fn or(a: Self::Bool, b: Self::Bool) -> Self::Bool;
            #[doc(hidden)]
            fn select(mask: Self::Bool, a: Self, b: Self) -> Self;
        }
    };
}

functions! { lane }
