//! Sums, products, extremes along axes.

use super::pool::with_room;
use super::simd::{Kernel, dispatch};
use super::threads::each_chunk;
use super::value::for_each_row;
use super::{Shape, Storable, Value};

/// An associative function of two elements, with what it gives for none.
pub(crate) trait Fold<T>: Copy {
    fn start(self) -> T;
    fn join(self, a: T, b: T) -> T;
}

/// Elements that are added up side by side. A constant, so that sums are the same on every CPU.
const LANES: usize = 32;
/// Elements after which partial sums are joined pairwise: the rounding error grows with the
/// logarithm of the length only.
const BLOCK: usize = 4096;
/// Elements that one thread takes at once.
const CHUNK: usize = 16 * BLOCK;

struct FoldKernel<'a, T, F>(&'a [T], F);

impl<T: Copy, F: Fold<T>> Kernel for FoldKernel<'_, T, F> {
    type Output = T;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> T {
        let Self(data, fold) = self;
        let mut lanes = [fold.start(); LANES];
        let (blocks, rest) = data.as_chunks::<LANES>();
        for block in blocks {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *lane = fold.join(*lane, *x);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane = fold.join(*lane, *x);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = fold.join(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

struct FoldRowsKernel<'a, T, F>(&'a mut [T], &'a [T], F);

impl<T: Copy, F: Fold<T>> Kernel for FoldRowsKernel<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (a, b) in self.0.iter_mut().zip(self.1) {
            *a = self.2.join(*a, *b);
        }
    }
}

pub(crate) fn fold_slice<T: Copy, F: Fold<T>>(data: &[T], fold: F) -> T {
    if data.len() <= 16 {
        return data.iter().fold(fold.start(), |a, &b| fold.join(a, b));
    }
    if data.len() <= BLOCK {
        return dispatch(FoldKernel(data, fold));
    }
    let (left, right) = halves(data);
    fold.join(fold_slice(left, fold), fold_slice(right, fold))
}

fn halves<T>(data: &[T]) -> (&[T], &[T]) {
    let half = (data.len() / 2).next_multiple_of(BLOCK);
    data.split_at(half.min(data.len()))
}

/// [`fold_slice`] on threads, where that pays: the same tree, whose branches are joined when all
/// are done.
fn fold_shared<T: Storable, F: Fold<T> + Sync>(data: &[T], fold: F) -> T {
    fn branches<'a, T>(data: &'a [T], all: &mut Vec<&'a [T]>) {
        if data.len() <= CHUNK {
            return all.push(data);
        }
        let (left, right) = halves(data);
        branches(left, all);
        branches(right, all);
    }
    fn join<T: Copy, F: Fold<T>>(data: &[T], done: &mut impl Iterator<Item = T>, fold: F) -> T {
        if data.len() <= CHUNK {
            return done.next().unwrap_or_else(|| fold.start());
        }
        let (left, right) = halves(data);
        let left = join(left, done, fold);
        fold.join(left, join(right, done, fold))
    }
    if data.len() <= CHUNK {
        return fold_slice(data, fold);
    }
    let mut all = Vec::new();
    branches(data, &mut all);
    let mut done = vec![T::ZERO; all.len()];
    each_chunk(&mut done, 1, |branch, result| result[0] = fold_slice(all[branch], fold));
    join(data, &mut done.into_iter(), fold)
}

/// All elements in one.
pub(crate) fn fold_all<T: Storable, F: Fold<T> + Sync>(x: &Value<T>, fold: F) -> T {
    if let Some(data) = x.as_slice() {
        return fold_shared(data, fold);
    }
    let x = x.contiguous();
    fold_shared(x.as_slice().unwrap_or(&[]), fold)
}

/// Along sorted `axes`, which stay with length 1.
pub(crate) fn fold_axes<T: Storable, F: Fold<T> + Sync>(
    x: &Value<T>,
    axes: &[usize],
    fold: F,
) -> Value<T> {
    let mut shape = Shape::from_slice(x.shape());
    axes.iter().for_each(|&axis| shape[axis] = 1);
    if axes.len() == x.rank() {
        return Value::full(shape, fold_all(x, fold));
    }
    let mut out = Value::full(shape.clone(), fold.start());
    let to = out.strides_as(x.shape());
    let from = x.strides();
    let raw = x.raw();
    let Some(data) = out.as_mut_slice() else {
        unreachable!("a new value is not shared");
    };
    let mut row_of_x = Vec::new();
    for_each_row(x.shape(), [&from, &to], |[start, at], n, [step, to_step]| {
        let row = if step == 1 {
            &raw[start..start + n]
        } else {
            row_of_x.clear();
            if n > row_of_x.capacity() {
                row_of_x = with_room(n);
            }
            row_of_x.extend((0..n).map(|i| raw[start + i * step]));
            &row_of_x[..]
        };
        match to_step {
            0 => data[at] = fold.join(data[at], fold_slice(row, fold)),
            1 => dispatch(FoldRowsKernel(&mut data[at..at + n], row, fold)),
            _ => {
                for (i, &x) in row.iter().enumerate() {
                    let slot = &mut data[at + i * to_step];
                    *slot = fold.join(*slot, x);
                }
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::threads::with_num_threads;

    #[derive(Clone, Copy)]
    struct Plus;

    impl Fold<f32> for Plus {
        fn start(self) -> f32 {
            0.0
        }

        fn join(self, a: f32, b: f32) -> f32 {
            a + b
        }
    }

    #[test]
    fn threads_change_no_bit() {
        for len in [10, CHUNK, CHUNK + 1, 5 * CHUNK + 77, 1_000_003] {
            let data: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin()).collect();
            let one = fold_slice(&data, Plus);
            for threads in [1, 2, 5] {
                let found = with_num_threads(threads, || fold_shared(&data, Plus));
                assert_eq!(found.to_bits(), one.to_bits());
            }
        }
    }
}
