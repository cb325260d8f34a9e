//! A walk over the elements of several operands at once, row by row.

use smallvec::SmallVec;

use super::shape::count;

/// Calls `row(starts, length, steps)` for each innermost run of `N` operands with their own strides
/// and one shape, in row-major order. Axes contiguous in all operands are merged first.
pub fn for_each_row<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    row: impl FnMut([usize; N], usize, [usize; N]),
) {
    Walk::new(shape, strides, 0).runs(count(shape), row);
}

/// Axes, innermost last: length, and step of each operand. Axes that all operands can walk as one are
/// merged; axes of length 1 are left out.
pub(super) type Merged<const N: usize> = SmallVec<[(usize, [usize; N]); 4]>;

pub(super) fn merged<const N: usize>(shape: &[usize], strides: [&[usize]; N]) -> Merged<N> {
    let mut merged: Merged<N> = SmallVec::new();
    for (i, &n) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
        let steps: [usize; N] = std::array::from_fn(|k| strides[k][i]);
        match merged.last_mut() {
            Some((m, outer)) if (0..N).all(|k| outer[k] == steps[k] * n) => {
                *m *= n;
                *outer = steps;
            }
            _ => merged.push((n, steps)),
        }
    }
    merged
}

/// The walk of [`for_each_row`], a block at a time.
pub struct Walk<const N: usize> {
    pub(super) axes: Merged<N>,
    index: SmallVec<[usize; 4]>,
    /// The offset of the current row in each operand.
    row: [usize; N],
}

impl<const N: usize> Walk<N> {
    pub fn new(shape: &[usize], strides: [&[usize]; N], mut start: usize) -> Self {
        let axes = merged(shape, strides);
        let (mut index, mut row) = (SmallVec::from_elem(0, axes.len()), [0; N]);
        for (axis, &(n, steps)) in axes.iter().enumerate().rev() {
            index[axis] = start % n.max(1);
            start /= n.max(1);
            if axis + 1 < axes.len() {
                (0..N).for_each(|k| row[k] += index[axis] * steps[k]);
            }
        }
        Self { axes, index, row }
    }

    /// Calls `run(starts, length, steps)` for each run of the next `count` elements.
    pub fn runs(&mut self, mut count: usize, mut run: impl FnMut([usize; N], usize, [usize; N])) {
        let Some(&(inner, steps)) = self.axes.last() else {
            return run([0; N], count, [1; N]);
        };
        let last = self.axes.len() - 1;
        while count > 0 {
            let at = self.index[last];
            let n = count.min(inner - at);
            run(self.starts(at, steps), n, steps);
            count -= n;
            self.index[last] += n;
            if self.index[last] == inner {
                self.index[last] = 0;
                self.next_row(last);
            }
        }
    }

    // Separate from the work on a row, so that it is compiled once.
    #[inline]
    fn starts(&self, at: usize, steps: [usize; N]) -> [usize; N] {
        std::array::from_fn(|k| self.row[k] + at * steps[k])
    }

    fn next_row(&mut self, outer: usize) {
        let Self { axes, index, row } = self;
        for (index, &(n, steps)) in index.iter_mut().zip(&*axes).take(outer).rev() {
            *index += 1;
            if *index < n {
                return (0..N).for_each(|k| row[k] += steps[k]);
            }
            (0..N).for_each(|k| row[k] -= steps[k] * (n - 1));
            *index = 0;
        }
    }
}

impl Walk<1> {
    /// Copies the next elements of an operand.
    pub fn copy<T: Copy>(&mut self, raw: &[T], mut out: &mut [T]) {
        self.runs(out.len(), |[start], n, [step]| {
            let (to, rest) = std::mem::take(&mut out).split_at_mut(n);
            out = rest;
            match step {
                1 => to.copy_from_slice(&raw[start..start + n]),
                0 => to.fill(raw[start]),
                _ => (0..n).for_each(|i| to[i] = raw[start + i * step]),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_merged() {
        let mut rows = 0;
        for_each_row(&[2, 3, 4], [&[12, 4, 1], &[0, 0, 1]], |_, n, _| {
            assert_eq!(n, 4);
            rows += 1;
        });
        assert_eq!(rows, 6);
        for_each_row(&[2, 3, 4], [&[12, 4, 1]], |_, n, _| assert_eq!(n, 24));
    }
}
