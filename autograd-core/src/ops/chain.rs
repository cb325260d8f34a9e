//! Chains of functions of each element in one pass over memory: each block goes through all of
//! them while it is in the first cache. The kernels are those of the ops, so the figures are too.

use smallvec::SmallVec;

use super::binary::kernels;
use super::elementwise::Handle;
use super::rules::{Target, place};
use super::{Binary, Float};
use crate::array::Storable;
use crate::array::elementwise::ZipAny;
use crate::array::shape::copied;
use crate::formula::{Formula, run_over, run_over2};
use crate::graph::Tensor;

/// Elements a block, at least.
const BLOCK: usize = 2048;

/// One function of a chain.
pub(crate) enum Link<'a, T: Float> {
    Function(Handle<T>),
    /// The same of two tensors, of one shape, of which what comes is the first or, where `swapped`,
    /// the second.
    Function2 {
        op: Handle<T>,
        other: &'a Tensor<T>,
        swapped: bool,
    },
    /// With a number on the right, or on the left where `swapped`.
    Scalar {
        op: Binary,
        scalar: T,
        swapped: bool,
    },
    /// The derivative of a function, of what its rule saves, times what comes.
    Gradient {
        op: Handle<T>,
        saved: Option<&'a Tensor<T>>,
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
    Map(&'a dyn Formula<T>),
    Map2(&'a dyn Formula<T>, &'a [T], bool),
    Scalar(&'static dyn ZipAny<T>, T),
    /// With as many elements as the whole.
    Whole(&'static dyn ZipAny<T>, &'a [T]),
    Gradient(&'a dyn Formula<T>, Option<&'a [T]>),
    /// With elements that are repeated: those of the last axes.
    Repeated(&'static dyn ZipAny<T>, &'a [T]),
}

/// The whole chain, in the first operand's own buffer where nobody else holds it, or else in the
/// place of `into`; the operand comes back where shapes or layouts do not fit one pass.
pub(crate) fn chain<T: Float>(
    x: Tensor<T>,
    links: &[Link<'_, T>],
    into: Target<T>,
) -> Result<Tensor<T>, Tensor<T>> {
    let reads: SmallVec<[_; 4]> = links
        .iter()
        .map(|link| match link {
            Link::With { other, .. } | Link::Function2 { other, .. } => Some(other.read()),
            Link::Gradient { saved, .. } => saved.map(Tensor::read),
            Link::Function(_) | Link::Scalar { .. } => None,
        })
        .collect();
    let mut parts = SmallVec::<[_; 4]>::new();
    let mut block = BLOCK;
    for (link, read) in links.iter().zip(&reads) {
        let part = match (link, read) {
            (Link::Function(op), _) => Part::Map(op.forward()),
            (Link::Function2 { op, other, swapped }, Some(read)) => match read.as_slice() {
                Some(data) if other.shape() == x.shape() => {
                    Part::Map2(op.forward(), data, *swapped)
                }
                _ => return Err(x),
            },
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
            (Link::Gradient { op, saved }, read) => {
                let data = match (saved, read) {
                    (Some(saved), Some(read)) if saved.shape() == x.shape() => {
                        let Some(data) = read.as_slice() else { return Err(x) };
                        Some(data)
                    }
                    (None, _) => None,
                    _ => return Err(x),
                };
                let Some(formula) = op.compiled_backward() else { return Err(x) };
                Part::Gradient(formula, data)
            }
            (Link::With { .. } | Link::Function2 { .. }, None) => return Err(x),
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
    Ok(Tensor::new(place(into).rewritten(copied(value.shape()), |out| {
        for (index, (data, out)) in data.chunks(block).zip(out.chunks_mut(block)).enumerate() {
            out.copy_from_slice(data);
            run(&parts, out, index * block);
        }
    })))
}

fn run<T: Float>(parts: &[Part<'_, T>], data: &mut [T], start: usize) {
    for part in parts {
        match part {
            Part::Map(formula) => run_over(*formula, data.len(), None, data),
            Part::Scalar(kernel, scalar) => kernel.run_scalar(data, *scalar),
            Part::Whole(kernel, other) => kernel.run(data, &other[start..start + data.len()]),
            Part::Map2(formula, other, swapped) => {
                let other = &other[start..start + data.len()];
                run_over2(*formula, other, *swapped, data);
            }
            Part::Gradient(formula, saved) => {
                let saved = saved.map(|saved| &saved[start..start + data.len()]);
                run_over(*formula, data.len(), saved, data);
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
    use super::super::Unary;
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
                Link::Function(Unary::Tanh.handle()),
                Link::With { op: Binary::Mul, other: &whole, swapped: true },
                Link::Scalar { op: Binary::Sub, scalar: 2.0, swapped: false },
                Link::Function(Unary::Exp.handle()),
            ];
            let held = chain(x.clone(), &links, None).unwrap_or_else(|_| panic!("it fits"));
            assert_eq!(held.to_vec(), expected.to_vec());
            let own = Tensor::from(x.to_vec()).reshape(shape);
            let owned = chain(own, &links, None).unwrap_or_else(|_| panic!("it fits"));
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
            assert_eq!(chain(x.clone(), &links, None).is_ok(), inline);
        }
    }
}
