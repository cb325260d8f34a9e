//! Limits on gradients.

use super::{FINITE, NOT_NEGATIVE, check};
use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::each_chunk;
use crate::engine::numbers;
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor, for_float, no_grad};
use crate::nn::Module;
use crate::ops::Float;

/// Scales the gradients of all parameters by one factor so that their norm, as one vector, is at most
/// `max_norm` (Pascanu, Mikolov and Bengio 2013), and returns the norm before. As in PyTorch the factor is
/// `max_norm / (norm + 1e-6)` if that is below 1; an infinite `max_norm` only measures. Squares do not
/// overflow.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::parameter;
/// use autograd_core::optim::clip_grad_norm;
///
/// let p = parameter(Tensor::from(vec![0.0, 0.0]));
/// p.set_grad(Some(&Tensor::from(vec![3.0, 4.0])))?;
/// assert_eq!(clip_grad_norm(&p, 1.0)?, 5.0);
/// assert!((p.grad().unwrap().norm().item() - 1.0_f64).abs() < 1e-6);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Value`](crate::Error::Value) if `max_norm` is negative or NaN, or the norm is not finite
/// ([`detect_anomaly`](crate::detect_anomaly) finds the source). Nothing is changed then.
pub fn clip_grad_norm(module: &(impl Module + ?Sized), max_norm: f64) -> Result<f64> {
    const OP: &str = "clip_grad_norm";
    check(OP, "max_norm", ("0 or more", |norm| norm >= 0.0), max_norm)?;
    by_norm(OP, &module.distinct_parameters(), max_norm)
}

fn by_norm(op: &'static str, parameters: &[(String, AnyTensor)], max_norm: f64) -> Result<f64> {
    let mut squares = 0.0;
    for gradient in gradients(parameters) {
        squares += for_float!(
            &gradient,
            gradient => sum_of_squares(gradient.read().contiguous().as_slice().unwrap_or(&[])),
            _ => 0.0
        );
    }
    let mut norm = squares.sqrt();
    if !(f64::MIN_POSITIVE / f64::EPSILON..f64::INFINITY).contains(&squares) {
        let largest = folded(parameters, |most, x| if most < x.abs() { x.abs() } else { most });
        if largest > 0.0 && largest < f64::INFINITY {
            let squares = folded(parameters, |sum, x| sum + (x / largest) * (x / largest));
            norm = squares.sqrt() * largest;
        }
    }
    check(op, "norm of the gradients", FINITE, norm)?;
    let factor = max_norm / (norm + 1e-6);
    if factor < 1.0 {
        for (_, parameter) in parameters {
            for_float!(parameter, tensor => change(tensor, |gradient| gradient * factor), _ => {});
        }
    }
    Ok(norm)
}

fn gradients(parameters: &[(String, AnyTensor)]) -> impl Iterator<Item = AnyTensor> {
    parameters.iter().filter_map(|(_, parameter)| parameter.grad())
}

fn folded(parameters: &[(String, AnyTensor)], f: impl Fn(f64, f64) -> f64) -> f64 {
    gradients(parameters).flat_map(|gradient| numbers(&gradient)).fold(0.0, f)
}

/// Number of elements whose squares make one partial sum.
const CHUNK: usize = 32 * 1024;

/// Returns the sum of squares in f64, whatever the element type.
fn sum_of_squares<T: Float>(data: &[T]) -> f64 {
    let mut sums = vec![0.0; data.len().div_ceil(CHUNK)];
    each_chunk(&mut sums, 1, &|chunk, sum| {
        let from = chunk * CHUNK;
        sum[0] = dispatch(SumOfSquares(&data[from..data.len().min(from + CHUNK)]));
    });
    sums.iter().sum()
}

struct SumOfSquares<'a, T>(&'a [T]);

/// Number of partial sums; a constant, so that the result is the same on every CPU.
const LANES: usize = 8;

impl<T: Float> Kernel for SumOfSquares<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let mut sums = [0.0; LANES];
        let (blocks, rest) = self.0.as_chunks::<LANES>();
        for block in blocks {
            for (sum, &x) in sums.iter_mut().zip(block) {
                let x = x.into_f64();
                *sum += x * x;
            }
        }
        for (sum, &x) in sums.iter_mut().zip(rest) {
            let x = x.into_f64();
            *sum += x * x;
        }
        sums.iter().sum()
    }
}

/// Limits every element of the gradients of all parameters to `-limit..=limit`. NaN stays NaN.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::parameter;
/// use autograd_core::optim::clip_grad_value;
///
/// let p = parameter(Tensor::from(vec![0.0, 0.0]));
/// p.set_grad(Some(&Tensor::from(vec![3.0, -0.5])))?;
/// clip_grad_value(&p, 1.0)?;
/// assert_eq!(p.grad().unwrap().to_vec(), [1.0, -0.5]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Value`](crate::Error::Value) if `limit` is negative or not finite.
pub fn clip_grad_value(module: &(impl Module + ?Sized), limit: f64) -> Result<()> {
    check("clip_grad_value", "limit", NOT_NEGATIVE, limit)?;
    by_value(&module.distinct_parameters(), limit);
    Ok(())
}

fn by_value(parameters: &[(String, AnyTensor)], limit: f64) {
    for (_, parameter) in parameters {
        for_float!(parameter, tensor => change(tensor, |gradient| gradient.clamp(-limit, limit)), _ => {});
    }
}

/// Changes the kept gradient of a parameter. Other handles of the gradient keep its old value.
fn change<T: Float>(tensor: &Tensor<T>, f: impl FnOnce(Tensor<T>) -> Tensor<T>) {
    let Some(gradient) = tensor.replace_grad(None) else { return };
    let _off = no_grad();
    let changed = f(gradient);
    // A gradient that a backward on another thread adds meanwhile is not lost.
    tensor.update_grad(|meanwhile| meanwhile.map_or(changed.clone(), |more| more + &changed));
}
