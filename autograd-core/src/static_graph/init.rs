//! How what the executor keeps starts.

use super::form::Form;
use crate::array::DType;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::Float;

/// How a parameter starts; see [`FcOptions`](crate::static_graph::FcOptions).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// Every element the same.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Normal with a mean and a standard deviation.
    Normal(f64, f64),
    /// Uniform within `sqrt(6 / (fan_in + fan_out))` of 0 (Glorot and Bengio 2010); the fans are
    /// the lengths of the first and the last axis.
    Xavier,
}

impl Init {
    /// A first value of a form without free axes.
    pub(super) fn run(self, form: &Form) -> AnyTensor {
        let shape: Vec<usize> = form.dims.iter().flatten().copied().collect();
        match form.dtype {
            DType::Float32 => self.typed::<f32>(shape).into(),
            DType::Float64 => self.typed::<f64>(shape).into(),
            // A count of steps.
            _ => Tensor::<i64>::zeros(shape).into(),
        }
    }

    fn typed<T: Float>(self, shape: Vec<usize>) -> Tensor<T> {
        match self {
            Self::Constant(value) => Tensor::full(shape, T::from_f64(value)),
            Self::Uniform(low, high) => Tensor::uniform(shape, low, high),
            Self::Normal(mean, std) => Tensor::normal(shape, mean, std),
            Self::Xavier => {
                let fans = shape.first().zip(shape.last()).map_or(2, |(a, b)| a + b);
                let bound = (6.0 / fans as f64).sqrt();
                Tensor::uniform(shape, -bound, bound)
            }
        }
    }
}
