//! The formulas of functions of two numbers.

use super::elementwise::formulas;
use super::{Arithmetic, Binary, Float};
use crate::array::Cheap;
use crate::formula::{Compiled, Formula, Lane, Real};

formulas! {
    Add |a, b| [a + b], Some(Cheap::Add);
    Sub |a, b| [a - b], Some(Cheap::Sub);
    Mul |a, b| [a * b], Some(Cheap::Mul);
    Div |a, b| [a / b], Some(Cheap::Div);
    Pow |a, b| [a.powf(b)];
    Maximum |a, b| [a.max(b)], Some(Cheap::Max);
    Minimum |a, b| [a.min(b)], Some(Cheap::Min);
}

/// Returns the formula of a function of two numbers.
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
