//! Examples, on which users' code is called while a program is built.

use super::form::Form;
use crate::array::DType;
use crate::graph::{AnyTensor, Element, Tensor};

/// A length for free axes, and where numbers start.
pub(super) type Example = (usize, usize);

pub(super) const EXAMPLES: [Example; 3] = [(5, 0), (7, 1), (6, 2)];

/// Numbers in (0, 1), indices of 0 and 1, masks of both; where numbers start at 0, all indices and masks are 0.
pub(super) fn example(form: &Form, (free, start): Example) -> AnyTensor {
    fn filled<T: Element>(shape: &[usize], element: impl Fn(usize) -> T) -> AnyTensor {
        let n = shape.iter().product();
        Tensor::from((0..n).map(element).collect::<Vec<T>>()).reshape(shape).into()
    }
    let shape: Vec<usize> = form.dims.iter().map(|dim| dim.unwrap_or(free)).collect();
    let step = |i: usize| (i * (start + 2) + start) % 2;
    let number = |i: usize| ((i * 37 + start * 11 + 5) % 97 + 1) as f64 / 99.0;
    match form.dtype {
        DType::Float32 => filled(&shape, |i| number(i) as f32),
        DType::Float64 => filled(&shape, number),
        DType::Int32 => filled(&shape, |i| step(i) as i32),
        DType::Int64 => filled(&shape, |i| step(i) as i64),
        DType::UInt8 => filled(&shape, |i| step(i) as u8),
        DType::Bool => filled(&shape, |i| step(i) == 1),
    }
}

/// The form of two examples: an axis on which they differ is free.
pub(super) fn form_of(a: &AnyTensor, b: &AnyTensor) -> Form {
    let dims = a.shape().iter().zip(b.shape()).map(|(a, b)| (a == b).then_some(*a));
    Form::new(a.dtype(), dims.collect())
}
