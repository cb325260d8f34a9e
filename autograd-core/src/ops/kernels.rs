//! The kernels of functions of two tensors, element by element.

use super::{Arithmetic, Binary, Float};
use crate::array::deferred::Step;
use crate::array::elementwise::{Zip, ZipAny};
use crate::array::math::Math;

macro_rules! kernels {
    ($($name:ident $bound:ident { $($own:tt)* } |$a:ident, $b:ident| $fma:ident $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl<T: $bound> Zip<T> for $name {
            $($own)*

            #[inline(always)]
            fn call<const $fma: bool>(self, $a: T, $b: T) -> T {
                $body
            }
        }
    )*};
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {
        kernels! {
            $($name Arithmetic { const ARITHMETIC: bool = true; } |$a, $b| FMA $body;)*
        }
    };
}

kernels! {
    Add |a, b| a.plus(b);
    Sub |a, b| a.minus(b);
    SubFrom |a, b| b.minus(a);
    Mul |a, b| a.times(b);
    Div |a, b| a.over(b);
    DivInto |a, b| b.over(a);
    Maximum |a, b| a.greater(b);
    MaximumOf |a, b| b.greater(a);
    Minimum |a, b| a.lesser(b);
    MinimumOf |a, b| b.lesser(a);
    // Of the left operand.
    Square |a, _b| a.times(a);
}

kernels! {
    Pow Math { const ELSEWHERE: bool = false; } |a, b| FMA a.v_pow::<FMA>(b);
    PowOf Math { const ELSEWHERE: bool = false; } |a, b| FMA b.v_pow::<FMA>(a);
}

/// The function of a tensor and `s`, or of `s` and the tensor, if it can be deferred.
pub(super) fn step<T>(op: Binary, s: T, swapped: bool) -> Option<Step<T>> {
    Some(match (op, swapped) {
        (Binary::Add, _) => Step::Add(s),
        (Binary::Sub, false) => Step::Sub(s),
        (Binary::Sub, true) => Step::SubFrom(s),
        (Binary::Mul, _) => Step::Mul(s),
        (Binary::Div, false) => Step::Div(s),
        (Binary::Div, true) => Step::DivInto(s),
        (Binary::Maximum, false) => Step::Max(s),
        (Binary::Minimum, false) => Step::Min(s),
        // Of two zeros the right one is the greater, and the lesser.
        (Binary::Maximum | Binary::Minimum, true) | (Binary::Pow, _) => return None,
    })
}

/// The kernel of a function and that of the function with its arguments exchanged.
pub(crate) fn kernels<T: Float>(op: Binary) -> [&'static dyn ZipAny<T>; 2] {
    match op {
        Binary::Add => [&Add, &Add],
        Binary::Sub => [&Sub, &SubFrom],
        Binary::Mul => [&Mul, &Mul],
        Binary::Div => [&Div, &DivInto],
        Binary::Pow => [&Pow, &PowOf],
        Binary::Maximum => [&Maximum, &MaximumOf],
        Binary::Minimum => [&Minimum, &MinimumOf],
    }
}
