//! The formulas of functions of two numbers, and of one with a constant on a side.

use std::sync::Arc;

use super::{Arithmetic, Binary, Float};
use crate::array::Step;
use crate::formula::{Compiled, Formula, Lane, Lanewise, Mask, Real};

macro_rules! formulas {
    ($($name:ident $in_place:literal |$a:ident, $b:ident| $y:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Lanewise<2, 0, 1> for $name {
            const IN_PLACE: bool = $in_place;

            #[inline(always)]
            fn call<L: Lane>(&self, [$a, $b]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
                [$y]
            }
        }
    )*};
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {
        kernels! {
            $($name Arithmetic { const ARITHMETIC: bool = true; } |$a, $b| FMA $body;)*
        }
    };
}

formulas! {
    Add true |a, b| a + b;
    Sub true |a, b| a - b;
    Mul true |a, b| a * b;
    Div true |a, b| a / b;
    Pow false |a, b| a.powf(b);
    Maximum false |a, b| a.max(b);
    Minimum false |a, b| a.min(b);
    Square false |a, _b| a * a;
}

/// A function with a number on its right.
pub(super) struct With<F>(pub(super) F, pub(super) f64);

impl<F: Lanewise<2, 0, 1>> Lanewise<1, 0, 1> for With<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [a]: [Real<L>; 1], _: [Mask<L>; 0]) -> [Real<L>; 1] {
        self.0.call([a, Real::from(self.1)], [])
    }
}

/// A function with a number on its left.
struct Behind<F>(F, f64);

impl<F: Lanewise<2, 0, 1>> Lanewise<1, 0, 1> for Behind<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [b]: [Real<L>; 1], _: [Mask<L>; 0]) -> [Real<L>; 1] {
        self.0.call([Real::from(self.1), b], [])
    }
}

/// The formula of a function of two numbers.
pub(super) fn of_two<T: Float>(op: Binary) -> &'static dyn Formula<T> {
    match op {
        Binary::Add => &Compiled(Add),
        Binary::Sub => &Compiled(Sub),
        Binary::Mul => &Compiled(Mul),
        Binary::Div => &Compiled(Div),
        Binary::Pow => &Compiled(Pow),
        Binary::Maximum => &Compiled(Maximum),
        Binary::Minimum => &Compiled(Minimum),
    }
}

/// The formula of the function with the number `s` on its right, or on its left if it is swapped.
pub(super) fn with_number<T: Float>(op: Binary, s: T, swapped: bool) -> Arc<dyn Formula<T>> {
    let number = s.into_f64();
    match (op, swapped) {
        (Binary::Add, _) => Arc::new(Compiled(With(Add, number))),
        (Binary::Sub, false) => Arc::new(Compiled(With(Sub, number))),
        (Binary::Sub, true) => Arc::new(Compiled(Behind(Sub, number))),
        (Binary::Mul, _) => Arc::new(Compiled(With(Mul, number))),
        (Binary::Div, false) => Arc::new(Compiled(With(Div, number))),
        (Binary::Div, true) => Arc::new(Compiled(Behind(Div, number))),
        (Binary::Pow, false) if number == 2.0 => Arc::new(Compiled(With(Square, number))),
        (Binary::Pow, false) => Arc::new(Compiled(With(Pow, number))),
        (Binary::Pow, true) => Arc::new(Compiled(Behind(Pow, number))),
        (Binary::Maximum, false) => Arc::new(Compiled(With(Maximum, number))),
        (Binary::Maximum, true) => Arc::new(Compiled(Behind(Maximum, number))),
        (Binary::Minimum, false) => Arc::new(Compiled(With(Minimum, number))),
        (Binary::Minimum, true) => Arc::new(Compiled(Behind(Minimum, number))),
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

/// The function of two integers.
pub(super) fn of_integers<T: Arithmetic>(op: Binary) -> fn(T, T) -> T {
    match op {
        Binary::Add => T::plus,
        Binary::Sub => T::minus,
        Binary::Mul => T::times,
        Binary::Div => T::over,
        Binary::Maximum => T::greater,
        Binary::Minimum => T::lesser,
        Binary::Pow => unreachable!("`pow` is offered for floats only"),
    }
}
