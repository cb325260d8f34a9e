//! Gradients in a few long lists, so that a message has many of them.

use autograd_core::{AnyTensor, DType, Tensor};

use crate::call::{Call, Calls, Kind};
use crate::error::Result;

/// A parameter, and the place of its gradient.
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) tensor: AnyTensor,
    pub(crate) bucket: usize,
    pub(crate) start: usize,
}

/// The numbers of a bucket, of one element type.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Divides parameters among buckets of at most so many bytes each, or of one parameter. The last parameters come
/// first: their gradients are ready first.
pub(crate) fn divide(
    parameters: Vec<(String, AnyTensor)>,
    first: usize,
    others: usize,
) -> (Vec<Slot>, Vec<Numbers>) {
    let (mut slots, mut buckets): (Vec<Slot>, Vec<Numbers>) = (Vec::new(), Vec::new());
    // The bucket of each element type that may grow further.
    let mut open: [Option<usize>; 2] = [None, None];
    for (name, tensor) in parameters.into_iter().rev() {
        let single = tensor.dtype() == DType::Float32;
        let bytes = tensor.len() * if single { 4 } else { 8 };
        let open = &mut open[usize::from(single)];
        let fits = |&at: &usize| {
            let limit = if at == 0 { first } else { others };
            buckets[at].bytes() + bytes <= limit
        };
        let bucket = open.filter(fits).unwrap_or_else(|| {
            buckets.push(match single {
                true => Numbers::F32(Vec::new()),
                false => Numbers::F64(Vec::new()),
            });
            buckets.len() - 1
        });
        *open = Some(bucket);
        let start = buckets[bucket].len();
        buckets[bucket].resize(start + tensor.len());
        slots.push(Slot { name, tensor, bucket, start });
    }
    (slots, buckets)
}

/// Runs one expression for the numbers of either type.
macro_rules! either {
    ($numbers:expr, $list:ident => $body:expr) => {
        match $numbers {
            Numbers::F32($list) => $body,
            Numbers::F64($list) => $body,
        }
    };
}
pub(crate) use either;

impl Numbers {
    /// In the place of a bucket that is on its way.
    pub(crate) fn none() -> Self {
        Self::F32(Vec::new())
    }

    /// A copy of the elements of a gradient.
    pub(crate) fn of(grad: &AnyTensor) -> Self {
        match grad {
            AnyTensor::Float32(grad) => Self::F32(grad.to_vec()),
            AnyTensor::Float64(grad) => Self::F64(grad.to_vec()),
            _ => unreachable!("a gradient is of floats"),
        }
    }

    fn len(&self) -> usize {
        either!(self, list => list.len())
    }

    fn bytes(&self) -> usize {
        match self {
            Self::F32(list) => 4 * list.len(),
            Self::F64(list) => 8 * list.len(),
        }
    }

    fn resize(&mut self, len: usize) {
        either!(self, list => list.resize(len, 0.0));
    }

    pub(crate) fn clear(&mut self) {
        either!(self, list => list.fill(0.0));
    }

    /// Adds `weight` times a gradient, of the bucket's element type.
    pub(crate) fn add(&mut self, start: usize, grad: &AnyTensor, weight: usize) {
        macro_rules! add {
            ($list:expr, $grad:expr, $float:ty) => {{
                let (view, weight) = ($grad.view(), weight as $float);
                let list = &mut $list[start..start + view.len()];
                match view.as_slice() {
                    Some(grad) => list.iter_mut().zip(grad).for_each(|(sum, x)| *sum += weight * x),
                    None => list.iter_mut().zip(&view).for_each(|(sum, x)| *sum += weight * x),
                }
            }};
        }
        match (self, grad) {
            (Self::F32(list), AnyTensor::Float32(grad)) => add!(list, grad, f32),
            (Self::F64(list), AnyTensor::Float64(grad)) => add!(list, grad, f64),
            _ => unreachable!("a gradient has the element type of its parameter"),
        }
    }

    /// Replaces the numbers by their sums over the ranks.
    pub(crate) fn sum(&mut self, calls: &Calls, part: usize, spare: &mut Spare) -> Result<()> {
        let call = Call::new(Kind::Bucket, self.len()).part(part);
        match self {
            Self::F32(list) => calls.sum(call, list, &mut spare.0),
            Self::F64(list) => calls.sum(call, list, &mut spare.1),
        }
    }

    /// Returns a part divided by a number, as a tensor of this shape.
    pub(crate) fn mean(&self, start: usize, shape: &[usize], items: f64) -> Result<AnyTensor> {
        let end = start + shape.iter().product::<usize>();
        Ok(match self {
            Self::F32(list) => {
                let items = items as f32;
                let mean = list[start..end].iter().map(|x| x / items).collect();
                Tensor::from_vec(shape, mean)?.into()
            }
            Self::F64(list) => {
                let mean = list[start..end].iter().map(|x| x / items).collect();
                Tensor::from_vec(shape, mean)?.into()
            }
        })
    }
}

/// Memory that receives sums, used again.
#[derive(Default)]
pub(crate) struct Spare(pub(crate) Vec<f32>, pub(crate) Vec<f64>);
