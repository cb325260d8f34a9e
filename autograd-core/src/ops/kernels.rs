//! The kernels of functions of two tensors, element by element.

use super::{Arithmetic, Binary, Float};
use crate::array::deferred::Step;
use crate::array::elementwise::{Zip, ZipAny};
use crate::array::math::Math;

/// The kernels, one for all number types.
#[derive(Clone, Copy)]
struct Add;
#[derive(Clone, Copy)]
struct Sub;
#[derive(Clone, Copy)]
struct SubFrom;
#[derive(Clone, Copy)]
struct Mul;
#[derive(Clone, Copy)]
struct Div;
#[derive(Clone, Copy)]
struct DivInto;
#[derive(Clone, Copy)]
struct Maximum;
#[derive(Clone, Copy)]
struct MaximumOf;
#[derive(Clone, Copy)]
struct Minimum;
#[derive(Clone, Copy)]
struct MinimumOf;
#[derive(Clone, Copy)]
struct Pow;
#[derive(Clone, Copy)]
struct PowOf;

/// Of the left operand.
#[derive(Clone, Copy)]
pub(super) struct Square;

macro_rules! kernels {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl<T: Arithmetic> Zip<T> for $name {
            const ARITHMETIC: bool = true;

            #[inline(always)]
            fn call<const FMA: bool>(self, $a: T, $b: T) -> T {
                $body
            }
        }
    )*};
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
    Square |a, _b| a.times(a);
}

impl<T: Math> Zip<T> for Pow {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        a.v_pow::<FMA>(b)
    }
}

impl<T: Math> Zip<T> for PowOf {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        b.v_pow::<FMA>(a)
    }
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

/// One kernel for all functions of integers: they are too rare to be compiled one by one.
#[derive(Clone, Copy)]
pub(super) struct Integer(pub(super) Binary, pub(super) bool);

impl<T: Arithmetic> Zip<T> for Integer {
    const ELSEWHERE: bool = false;

    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        let (a, b) = if self.1 { (b, a) } else { (a, b) };
        match self.0 {
            Binary::Add => a.plus(b),
            Binary::Sub => a.minus(b),
            Binary::Mul => a.times(b),
            Binary::Div => a.over(b),
            Binary::Maximum => a.greater(b),
            Binary::Minimum => a.lesser(b),
            Binary::Pow => unreachable!("`pow` is offered for floats only"),
        }
    }
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

/// As [`kernels`], for integers.
pub(crate) fn integer_kernels<T: Arithmetic>(op: Binary) -> [&'static dyn ZipAny<T>; 2] {
    macro_rules! both {
        ($($op:ident)*) => {
            match op {
                $(Binary::$op => {
                    [&Integer(Binary::$op, false), &Integer(Binary::$op, true)]
                })*
            }
        };
    }
    both! { Add Sub Mul Div Pow Maximum Minimum }
}
