//! The formulas of functions of two numbers.

use super::{Arithmetic, Binary, Float};
pub(super) use crate::formula::table::{Add, Div, Max as Maximum, Min as Minimum, Mul, Pow, Sub};
use crate::formula::{Compiled, Formula};

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
