//! Results of a pass that are reduced: sums of each chunk, joined in order.

use crate::array::Storable;
use crate::array::math::Math;
use crate::array::reduce::{Plus, fold_slice};
use crate::array::rows::Walk;
use crate::array::shape::{broadcast_strides, count, row_major};

/// The sums of a result, in a smaller shape, and the rounding errors of sums over runs.
pub struct Sums<T> {
    walk: Walk<1>,
    sums: Vec<T>,
    lost: Vec<T>,
}

impl<T: Math + Storable> Sums<T> {
    pub fn new(target: &[usize], shape: &[usize], start: usize) -> Self {
        let sums = vec![T::ZERO; count(target)];
        let strides = broadcast_strides(target, &row_major(target), shape);
        Self { walk: Walk::new(shape, [&strides], start), lost: sums.clone(), sums }
    }

    pub fn take(&mut self, block: &[T]) {
        let Self { walk, sums, lost } = self;
        let mut at = 0;
        walk.runs(block.len(), |[start], n, [step]| {
            let part = &block[at..at + n];
            at += n;
            match step {
                0 => add(&mut sums[start], &mut lost[start], fold_slice(part, &Plus)),
                1 => {
                    for (sum, x) in sums[start..start + n].iter_mut().zip(part) {
                        *sum = *sum + *x;
                    }
                }
                _ => {
                    for (i, x) in part.iter().enumerate() {
                        let k = start + i * step;
                        sums[k] = sums[k] + *x;
                    }
                }
            }
        });
    }

    pub fn join(&mut self, next: Self) {
        for (k, (sum, rest)) in next.sums.into_iter().zip(next.lost).enumerate() {
            add(&mut self.sums[k], &mut self.lost[k], sum);
            self.lost[k] = self.lost[k] + rest;
        }
    }

    pub fn finish(self) -> Vec<T> {
        let mut sums = self.sums;
        for (sum, lost) in sums.iter_mut().zip(self.lost) {
            // The rounding error of an infinite sum is not a number.
            if lost.abs() < T::infinity() {
                *sum = *sum + lost;
            }
        }
        sums
    }
}

/// Adds with the rounding error kept apart (Neumaier), so that a sum of many blocks is as accurate
/// as that of one.
fn add<T: Math>(sum: &mut T, lost: &mut T, x: T) {
    let total = *sum + x;
    let (large, small) = if sum.abs() >= x.abs() { (*sum, x) } else { (x, *sum) };
    *lost = *lost + ((large - total) + small);
    *sum = total;
}
