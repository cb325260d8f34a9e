//! The loops: each rule in one pass over memory, compiled once for each float type in this crate.
//! Threads share long ones; figures do not depend on how.

use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::{each_chunk, each_grain, each_grain_of};
use crate::ops::Float;

/// The element types that parameters have.
pub(crate) trait Kernels: Float {
    fn sgd(parameter: &mut [Self], gradient: &[Self], by: Sgd<Self>);
    fn sgd_momentum(parameter: &mut [Self], gradient: &[Self], buffer: &mut [Self], by: Sgd<Self>);
    fn adam(parameter: &mut [Self], gradient: &[Self], moments: [&mut [Self]; 2], by: Adam<Self>);
    /// In f64, whatever the elements are.
    fn sum_of_squares(data: &[Self]) -> f64;
    fn multiply(data: &mut [Self], factor: Self);
    fn limit(data: &mut [Self], limit: Self);
}

/// Elements whose squares are summed before they are added to others.
const CHUNK: usize = 32 * 1024;

macro_rules! kernels {
    ($($t:ty)*) => {$(
        impl Kernels for $t {
            fn sgd(parameter: &mut [Self], gradient: &[Self], by: Sgd<Self>) {
                each_grain(parameter, &|start, parameter| {
                    let gradient = &gradient[start..][..parameter.len()];
                    dispatch(SgdPlain { parameter, gradient, by });
                });
            }
            fn sgd_momentum(
                parameter: &mut [Self],
                gradient: &[Self],
                buffer: &mut [Self],
                by: Sgd<Self>,
            ) {
                each_grain_of([parameter, buffer], &|start, [parameter, buffer]| {
                    let gradient = &gradient[start..][..parameter.len()];
                    dispatch(SgdMomentum { parameter, gradient, buffer, by });
                });
            }
            fn adam(
                parameter: &mut [Self],
                gradient: &[Self],
                [mean, square]: [&mut [Self]; 2],
                by: Adam<Self>,
            ) {
                each_grain_of([parameter, mean, square], &|start, [parameter, mean, square]| {
                    let gradient = &gradient[start..][..parameter.len()];
                    dispatch(AdamPass { parameter, gradient, moments: [mean, square], by });
                });
            }
            fn sum_of_squares(data: &[Self]) -> f64 {
                let mut sums = vec![0.0; data.len().div_ceil(CHUNK)];
                each_chunk(&mut sums, 1, &|chunk, sum| {
                    let from = chunk * CHUNK;
                    sum[0] = dispatch(SumOfSquares(&data[from..data.len().min(from + CHUNK)]));
                });
                sums.iter().sum()
            }
            fn multiply(data: &mut [Self], factor: Self) {
                each_grain(data, &|_, data| dispatch(Each(data, |x| x * factor)));
            }
            fn limit(data: &mut [Self], limit: Self) {
                // Written so that NaN stays.
                let limited = |x| if x > limit { limit } else if x < -limit { -limit } else { x };
                each_grain(data, &|_, data| dispatch(Each(data, limited)));
            }
        }
    )*};
}

kernels! { f32 f64 }

/// What is the same for all elements in a step of SGD.
#[derive(Clone, Copy)]
pub(crate) struct Sgd<T> {
    pub(super) rate: T,
    pub(super) weight_decay: T,
    pub(super) momentum: T,
    /// The part of the gradient that goes into the buffer: 1 less the dampening; 1 at first.
    pub(super) intake: T,
    pub(super) nesterov: bool,
}

struct SgdPlain<'a, T> {
    parameter: &'a mut [T],
    gradient: &'a [T],
    by: Sgd<T>,
}

impl<T: Float> Kernel for SgdPlain<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { parameter, gradient, by } = self;
        for (p, &g) in parameter.iter_mut().zip(gradient) {
            *p = *p - by.rate * (g + by.weight_decay * *p);
        }
    }
}

struct SgdMomentum<'a, T> {
    parameter: &'a mut [T],
    gradient: &'a [T],
    buffer: &'a mut [T],
    by: Sgd<T>,
}

impl<T: Float> Kernel for SgdMomentum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { parameter, gradient, buffer, by } = self;
        // The step is `look g + follow b`, with the new buffer.
        let (look, follow) = if by.nesterov { (T::ONE, by.momentum) } else { (T::ZERO, T::ONE) };
        for ((p, &g), b) in parameter.iter_mut().zip(gradient).zip(buffer) {
            let g = g + by.weight_decay * *p;
            *b = by.momentum * *b + by.intake * g;
            *p = *p - by.rate * (look * g + follow * *b);
        }
    }
}

/// What is the same for all elements in a step of Adam.
#[derive(Clone, Copy)]
pub(crate) struct Adam<T> {
    pub(super) betas: [T; 2],
    /// 1 less each beta, rounded once.
    pub(super) intakes: [T; 2],
    /// The step size over the first bias correction.
    pub(super) rate: T,
    /// 1 over the square root of the second bias correction.
    pub(super) scale: T,
    pub(super) eps: T,
    /// Of the parameter into the gradient.
    pub(super) weight_decay: T,
    /// What is left of the parameter.
    pub(super) shrink: T,
}

struct AdamPass<'a, T> {
    parameter: &'a mut [T],
    gradient: &'a [T],
    moments: [&'a mut [T]; 2],
    by: Adam<T>,
}

impl<T: Float> Kernel for AdamPass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { parameter, gradient, moments: [mean, square], by } = self;
        let (blocks, rest) = parameter.as_chunks_mut::<BLOCK>();
        let (gradients, gradient) = gradient.as_chunks::<BLOCK>();
        let (means, mean) = mean.as_chunks_mut::<BLOCK>();
        let (squares, square) = square.as_chunks_mut::<BLOCK>();
        for (((p, g), m), v) in blocks.iter_mut().zip(gradients).zip(means).zip(squares) {
            adam_block(p, g, m, v, by);
        }
        let moments = mean.iter_mut().zip(square);
        for ((p, &g), (m, v)) in rest.iter_mut().zip(gradient).zip(moments) {
            (*p, *m, *v) = adam_element(*p, g, *m, *v, by);
        }
    }
}

/// Elements that are loaded before any is stored: with four slices, of which three are written,
/// the compiler would not make vectors of them otherwise.
const BLOCK: usize = 16;

#[inline(always)]
fn adam_block<T: Float>(
    p: &mut [T; BLOCK],
    g: &[T; BLOCK],
    m: &mut [T; BLOCK],
    v: &mut [T; BLOCK],
    by: Adam<T>,
) {
    let (mut new_p, mut new_m, mut new_v) = (*p, *m, *v);
    for i in 0..BLOCK {
        (new_p[i], new_m[i], new_v[i]) = adam_element(new_p[i], g[i], new_m[i], new_v[i], by);
    }
    (*p, *m, *v) = (new_p, new_m, new_v);
}

#[inline(always)]
fn adam_element<T: Float>(p: T, g: T, m: T, v: T, by: Adam<T>) -> (T, T, T) {
    let g = g + by.weight_decay * p;
    let m = by.betas[0] * m + by.intakes[0] * g;
    let v = by.betas[1] * v + by.intakes[1] * g * g;
    (by.shrink * p - by.rate * m / (v.sqrt() * by.scale + by.eps), m, v)
}

struct SumOfSquares<'a, T>(&'a [T]);

/// Sums side by side; a constant, so that the result is the same on every CPU.
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

struct Each<'a, T, F>(&'a mut [T], F);

impl<T: Float, F: Fn(T) -> T> Kernel for Each<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for x in self.0 {
            *x = (self.1)(*x);
        }
    }
}
