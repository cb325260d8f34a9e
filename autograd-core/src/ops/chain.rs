//! Chains of functions of each element in one pass over memory: each block goes through all of
//! them while it is in the first cache. The kernels are those of the ops, so the figures are too.

use smallvec::SmallVec;

use super::binary::kernels;
use super::{Binary, Float, Unary};
use crate::array::elementwise::ZipAny;
use crate::array::shape::copied;
use crate::array::{Storable, Value};
use crate::formula::{Formula, run_over};
use crate::graph::Tensor;

/// Elements a block, at least.
const BLOCK: usize = 2048;

/// One function of a chain.
pub(crate) enum Link<'a, T: Float> {
    Unary(Unary),
    /// With a number on the right, or on the left where `swapped`.
    Scalar {
        op: Binary,
        scalar: T,
        swapped: bool,
    },
    /// The derivative of a function, of what its rule saves, times what comes.
    Gradient {
        op: Unary,
        saved: &'a Tensor<T>,
    },
    /// With a tensor on the right, or on the left where `swapped`.
    With {
        op: Binary,
        other: &'a Tensor<T>,
        swapped: bool,
    },
}

/// A function and how it is applied to a block.
enum Part<'a, T: Storable> {
    Map(&'static dyn Formula<T>),
    Scalar(&'static dyn ZipAny<T>, T),
    /// With as many elements as the whole.
    Whole(&'static dyn ZipAny<T>, &'a [T]),
    Gradient(&'static dyn Formula<T>, &'a [T]),
    /// With elements that are repeated: those of the last axes.
    Repeated(&'static dyn ZipAny<T>, &'a [T]),
}

impl Unary {
    /// Whether a chain may have it: what happens to a great angle depends on its neighbours.
    pub(crate) fn chains(self) -> bool {
        !matches!(self, Self::Sin | Self::Cos | Self::Tan)
    }
}

/// The whole chain, in the first operand's own buffer where nobody else holds it; the operand comes
/// back where shapes or layouts do not fit one pass.
pub(crate) fn chain<T: Float>(x: Tensor<T>, links: &[Link<'_, T>]) -> Result<Tensor<T>, Tensor<T>> {
    let reads: SmallVec<[_; 4]> = links
        .iter()
        .map(|link| match link {
            Link::With { other, .. } | Link::Gradient { saved: other, .. } => Some(other.read()),
            Link::Unary(_) | Link::Scalar { .. } => None,
        })
        .collect();
    let mut parts = SmallVec::<[_; 4]>::new();
    let mut block = BLOCK;
    for (link, read) in links.iter().zip(&reads) {
        let part = match (link, read) {
            (Link::Unary(op), _) => Part::Map(op.op().forward()),
            (Link::Scalar { op, scalar, swapped }, _) => {
                Part::Scalar(kernels(*op)[usize::from(*swapped)], *scalar)
            }
            (Link::With { op, other, swapped }, Some(read)) => {
                let kernel = kernels(*op)[usize::from(*swapped)];
                let Some(data) = read.as_slice() else { return Err(x) };
                match (data, other.shape()) {
                    (data, shape) if shape == x.shape() => Part::Whole(kernel, data),
                    (&[element], shape) if shape.len() <= x.ndim() => Part::Scalar(kernel, element),
                    (data, shape) if !data.is_empty() && x.shape().ends_with(shape) => {
                        if !block.is_multiple_of(data.len()) {
                            if block != BLOCK && !data.len().is_multiple_of(block) {
                                return Err(x);
                            }
                            block = data.len() * (BLOCK / data.len()).max(1);
                        }
                        Part::Repeated(kernel, data)
                    }
                    _ => return Err(x),
                }
            }
            (Link::Gradient { op, saved }, Some(read)) => match read.as_slice() {
                Some(data) if saved.shape() == x.shape() => match op.op().compiled_backward() {
                    Some(formula) => Part::Gradient(formula, data),
                    None => return Err(x),
                },
                _ => return Err(x),
            },
            (Link::With { .. } | Link::Gradient { .. }, None) => return Err(x),
        };
        parts.push(part);
    }
    // Where lengths that are repeated do not fit into one block, blocks would not begin with them.
    let fits = |part: &Part<'_, T>| match part {
        Part::Repeated(_, data) => block.is_multiple_of(data.len()),
        _ => true,
    };
    if !parts.iter().all(fits) {
        return Err(x);
    }
    let mut value = match x.try_into_value() {
        Ok(value) => value,
        Err(x) => x.read().into_owned(),
    };
    if let Some(data) = value.as_mut_slice() {
        for (index, data) in data.chunks_mut(block).enumerate() {
            run(&parts, data, index * block);
        }
        return Ok(Tensor::new(value));
    }
    let value = value.into_contiguous();
    let data = value.as_slice().unwrap_or(&[]);
    Ok(Tensor::new(Value::build(copied(value.shape()), |out| {
        for data in data.chunks(block) {
            let start = out.len();
            out.extend_from_slice(data);
            run(&parts, &mut out[start..], start);
        }
    })))
}

fn run<T: Float>(parts: &[Part<'_, T>], data: &mut [T], start: usize) {
    for part in parts {
        match part {
            Part::Map(formula) => run_over(*formula, data.len(), None, data),
            Part::Scalar(kernel, scalar) => kernel.run_scalar(data, *scalar),
            Part::Whole(kernel, other) => kernel.run(data, &other[start..start + data.len()]),
            Part::Gradient(formula, saved) => {
                let saved = &saved[start..start + data.len()];
                run_over(*formula, data.len(), Some(saved), data);
            }
            Part::Repeated(kernel, other) => {
                for row in data.chunks_mut(other.len()) {
                    kernel.run(row, &other[..row.len()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_its_links_one_by_one() {
        for shape in [vec![3, 5], vec![7, 1000], vec![2, 3000]] {
            let n: usize = shape.iter().product();
            let x = Tensor::from((0..n).map(|i| (i as f64 * 0.37).sin()).collect::<Vec<_>>());
            let x = x.reshape(shape.clone());
            let row = Tensor::<f64>::linspace(-1.0, 1.0, shape[1]);
            let whole = &x * 0.5;
            let expected = ((&x + &row).tanh() * &whole - 2.0).exp();
            let links = [
                Link::With { op: Binary::Add, other: &row, swapped: false },
                Link::Unary(Unary::Tanh),
                Link::With { op: Binary::Mul, other: &whole, swapped: true },
                Link::Scalar { op: Binary::Sub, scalar: 2.0, swapped: false },
                Link::Unary(Unary::Exp),
            ];
            let held = chain(x.clone(), &links).unwrap_or_else(|_| panic!("it fits"));
            assert_eq!(held.to_vec(), expected.to_vec());
            let own = Tensor::from(x.to_vec()).reshape(shape);
            let owned = chain(own, &links).unwrap_or_else(|_| panic!("it fits"));
            assert_eq!(owned.to_vec(), expected.to_vec());
        }
    }

    #[test]
    fn what_does_not_fit_comes_back() {
        let x = Tensor::<f64>::ones([2, 3]);
        for other in
            [Tensor::ones([2, 1]), Tensor::ones([4, 2, 3]), Tensor::ones([3, 2]).transpose()]
        {
            let links = [Link::With { op: Binary::Add, other: &other, swapped: false }];
            let inline = other.shape() == x.shape();
            assert_eq!(chain(x.clone(), &links).is_ok(), inline);
        }
    }
}
