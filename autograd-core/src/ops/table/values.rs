//! The values of operators, and how eager ops run on values of any element type.

use std::any::Any;

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor};
use crate::ops::number::Refused;

/// The inputs or outputs of an operator; seldom more than four.
pub(crate) type Values = SmallVec<[AnyTensor; 4]>;

pub(crate) type Computed<T> = std::result::Result<T, String>;

#[derive(Debug)]
pub(crate) enum Fault {
    Eager(Error),
    /// Why an operator of a program cannot run.
    Words(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Eager(error)
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Words(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Self::Words(why.to_owned())
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Eager(error) => error.to_string(),
            Fault::Words(why) => why,
        }
    }
}

pub(crate) type Ran<T = Values> = std::result::Result<T, Fault>;

/// Runs an eager op on a value of one of these types, or on two of the same one.
macro_rules! of_types {
    ([$($of:ident)*] $values:expr, $x:ident => $done:expr) => {
        $crate::graph::for_any!([$($of)*] $crate::ops::table::values::one($values)?,
            $x => $crate::ops::table::values::computed($done),
            other => Err($crate::ops::table::values::not_numbers(&other).into()))
    };
    ([$($of:ident)*] $values:expr, ($a:ident, $b:ident) => $done:expr) => {
        match $crate::ops::table::values::several($values)? {
            $([$crate::graph::AnyTensor::$of($a), $crate::graph::AnyTensor::$of($b)] => {
                $crate::ops::table::values::computed($done)
            })*
            [other, _] => Err($crate::ops::table::values::not_numbers(&other).into()),
        }
    };
}
pub(crate) use of_types;

macro_rules! float {
    ($($given:tt)*) => {
        $crate::ops::table::values::of_types!([Float32 Float64] $($given)*)
    };
}
pub(crate) use float;

macro_rules! number {
    ($($given:tt)*) => {
        $crate::ops::table::values::of_types!([Float32 Float64 Int32 Int64 UInt8] $($given)*)
    };
}
pub(crate) use number;

macro_rules! any {
    ($values:expr, $x:ident => $done:expr) => {
        $crate::graph::for_any!($crate::ops::table::values::one($values)?, $x =>
            $crate::ops::table::values::computed($done))
    };
}
pub(crate) use any;

#[cold]
pub(crate) fn not_numbers(found: &AnyTensor) -> String {
    format!("does not compute with {}", found.dtype())
}

/// Returns an error's message without the op's name in front.
pub(crate) fn message(error: impl Into<Error>) -> String {
    let text = error.into().to_string();
    text.split_once(": ").map_or(text.clone(), |(_, why)| why.to_owned())
}

pub(crate) fn computed<T: Element>(done: Result<Tensor<T>>) -> Ran {
    Ok(alone(T::wrap(done?)))
}

fn alone(output: AnyTensor) -> Values {
    smallvec![output]
}

pub(crate) fn first(values: Values) -> AnyTensor {
    let first = values.into_iter().next();
    first.unwrap_or_else(|| unreachable!("an op has a result"))
}

pub(crate) fn several<const N: usize>(values: Values) -> Computed<[AnyTensor; N]> {
    let mut values = values.into_iter();
    let found: [Option<AnyTensor>; N] = std::array::from_fn(|_| values.next());
    if found.iter().any(Option::is_none) {
        return Err("an input is missing".to_owned());
    }
    Ok(found.map(|value| value.unwrap_or_else(|| unreachable!("none is missing"))))
}

pub(crate) fn one(values: Values) -> Computed<AnyTensor> {
    several(values).map(|[value]| value)
}

pub(crate) fn all<T: Element>(values: &[AnyTensor]) -> Computed<Vec<&Tensor<T>>> {
    let tensors: Option<Vec<&Tensor<T>>> = values.iter().map(AnyTensor::downcast_ref).collect();
    tensors.ok_or_else(|| "its inputs are of different element types".to_owned())
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(Refused(why)) = panic.downcast_ref() {
        return why.clone();
    }
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}
