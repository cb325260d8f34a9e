//! A walk over the elements of several operands at once, row by row.

use smallvec::SmallVec;

/// Calls `row(starts, length, steps)` for each innermost run of `N` operands that are read with
/// their own strides under one shape, in row-major order. Axes that all operands walk as one are
/// merged first, so that rows are as long as they can be.
pub fn for_each_row<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
    mut row: impl FnMut([usize; N], usize, [usize; N]),
) {
    let Some(mut rows) = Rows::new(shape, strides) else { return };
    loop {
        row(rows.starts, rows.length, rows.steps);
        if !rows.advance() {
            return;
        }
    }
}

/// Where the walk is. Apart from what is done with a row, so that it is compiled once.
pub(super) struct Rows<const N: usize> {
    /// Merged axes but the innermost, innermost last: length, step of each operand.
    pub(super) outer: SmallVec<[(usize, [usize; N]); 4]>,
    index: SmallVec<[usize; 4]>,
    starts: [usize; N],
    pub(super) length: usize,
    pub(super) steps: [usize; N],
}

/// Axes that all operands walk as one are merged, and those of length 1 left out: length, step of each operand.
pub(super) fn merged<const N: usize>(
    shape: &[usize],
    strides: [&[usize]; N],
) -> SmallVec<[(usize, [usize; N]); 4]> {
    let mut merged: SmallVec<[(usize, [usize; N]); 4]> = SmallVec::new();
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

impl<const N: usize> Rows<N> {
    /// `None` where there is no element.
    pub(super) fn new(shape: &[usize], strides: [&[usize]; N]) -> Option<Self> {
        if shape.contains(&0) {
            return None;
        }
        let mut merged = merged(shape, strides);
        let (length, steps) = merged.pop().unwrap_or((1, [1; N]));
        let index = SmallVec::from_elem(0, merged.len());
        Some(Self { outer: merged, index, starts: [0; N], length, steps })
    }

    /// To the next row, if there is one.
    fn advance(&mut self) -> bool {
        let Self { outer, index, starts, .. } = self;
        for (index, (length, step)) in index.iter_mut().zip(outer).rev() {
            *index += 1;
            if *index < *length {
                (0..N).for_each(|k| starts[k] += step[k]);
                return true;
            }
            (0..N).for_each(|k| starts[k] -= step[k] * (*length - 1));
            *index = 0;
        }
        false
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
