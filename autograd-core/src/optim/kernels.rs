//! The loops of the rules, whose results do not depend on the number of threads.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several arrays")]

use std::mem::take;

use crate::array::simd::{Kernel, dispatch};
use crate::array::threads::{each_chunk, each_grain_of};
use crate::ops::Float;

/// Number of elements whose squares make one partial sum.
const CHUNK: usize = 32 * 1024;

/// Returns the sum of squares in f64, whatever the element type.
pub(super) fn sum_of_squares<T: Float>(data: &[T]) -> f64 {
    let mut sums = vec![0.0; data.len().div_ceil(CHUNK)];
    each_chunk(&mut sums, 1, &|chunk, sum| {
        let from = chunk * CHUNK;
        sum[0] = dispatch(SumOfSquares(&data[from..data.len().min(from + CHUNK)]));
    });
    sums.iter().sum()
}

pub(super) fn each_element<T: Float, const N: usize>(
    written: [&mut [T]; N],
    gradient: &[T],
    step: impl Fn([T; N], T) -> [T; N] + Copy + Sync,
) {
    each_grain_of(written, &|start, written| {
        let gradient = &gradient[start..][..written[0].len()];
        dispatch(EachElement { written, gradient, step });
    });
}

struct EachElement<'a, T, F, const N: usize> {
    written: [&'a mut [T]; N],
    gradient: &'a [T],
    step: F,
}

impl<T: Float, F: Fn([T; N], T) -> [T; N], const N: usize> Kernel for EachElement<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { mut written, gradient, step } = self;
        // Tells the compiler that all have one length.
        for slice in &mut written {
            *slice = &mut take(slice)[..gradient.len()];
        }
        for (i, &g) in gradient.iter().enumerate() {
            let mut elements = [g; N];
            for n in 0..N {
                elements[n] = written[n][i];
            }
            elements = step(elements, g);
            for n in 0..N {
                written[n][i] = elements[n];
            }
        }
    }
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
