//! The names of ops, and the functions of one tensor: those of the table of formulas, and formulas of these.

use std::panic::Location;

pub(crate) use crate::formula::Binary;

pub(crate) type Caller = &'static Location<'static>;

macro_rules! kinds {
    ($kinds:ident { $($kind:ident $name:expr,)* }) => {
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kinds { $($kind),* }

        impl $kinds {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$kind),*];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }
        }
    };
}

pub(super) fn takes_integers(op: Binary) -> bool {
    use Binary::{Add, Div, Max, Min, Mul, Sub};
    matches!(op, Add | Sub | Mul | Div | Max | Min)
}

kinds! {
    Reduce { Sum "sum", Mean "mean", Prod "prod", Max "max", Min "min", }
}

/// Passes the functions of one tensor to a macro, each with documentation, method, name, formula and rule.
// `silu` and `gelu` limit the factor `x` to 1000, where the other factor is 0 or 1 already, so that
// infinity is not multiplied by 0.
macro_rules! all_functions {
    ($take:ident) => {
        $crate::formula::tensor_functions! { joined_functions [$take:
            /// `-x`; also written `-&x`.
            ///
            /// The gradient in `f32` is exact at all numbers.
            neg Neg { |x| -x }, { |dy| -dy };
            /// 1 where `x > 0`, else 0 (Heaviside's function). The gradient is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            #[doc(alias = "heaviside")]
            step Step { |x| x.step() }, { flat };
            /// `x * x`.
            ///
            /// The gradient in `f32` is exact at all numbers.
            #[doc(alias = "sqr")]
            square Square { |x| x * x }, { |x, dy| dy * x * 2.0 };
            /// `x * sigmoid(x)` (Elfwing, Uchida and Doya 2018), also called swish (Ramachandran, Zoph and Le 2017).
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 6.1e-6.
            #[doc(alias = "swish")]
            silu Silu { |x| x.max(-1000.0) * x.sigmoid() },
                { |x, dy| dy * (x.sigmoid() * ((1.0 - x.sigmoid()) * x.clamp(-1000.0, 1000.0) + 1.0)) };
            /// `x` where `x > 0`, else 0 (Nair and Hinton 2010); the gradient at 0 is 0. NaN stays NaN.
            ///
            /// The gradient in `f32` is exact at all numbers.
            relu Relu { |x| x.lt(0.0).select(0.0, x) }, { |y, dy| y.le(0.0).select(0.0, dy) };
            /// The Gaussian error linear unit `x * (1 + erf(x / sqrt(2))) / 2` (Hendrycks and Gimpel 2016).
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 3.3e-2, near -5.5, where the slope is less than 1e-6.
            #[doc(alias = "gelu_erf")]
            gelu Gelu { |x| x.max(-1000.0) * 0.5 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) },
                { |x, dy| dy * (((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
                    + (x * x * -0.5).exp() * x.clamp(-1000.0, 1000.0) * 0.398_942_280_401_432_7) };
        ] }
    };
}

/// Joins the functions above with those of the table of formulas, whose formulas are their own methods.
macro_rules! joined_functions {
    ([$take:ident: $($own:tt)*] $(
        $(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $rule:tt;
    )*) => {
        $take! { $($own)* $($(#[$doc])* $method $variant table, $rule;)* }
    };
}

pub(crate) use {all_functions, joined_functions};

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident $variant:ident $formula:tt, $rule:tt;)*) => {
        kinds! {
            Unary { $($variant stringify!($method),)* }
        }
    };
}

all_functions! { unary }
