//! Short rows that stand side by side, for what goes along many rows at once.

use super::panels::pack;
use crate::array::Storable;
use crate::array::simd::{VectorKernel, Vectored, Vectors};

/// So many rows stand side by side; a constant, so that sums are the same on every CPU.
pub(crate) const ABREAST: usize = 16;

/// Copies rows of `n` numbers, [`ABREAST`] at a time, as the columns of `n` lines each. Rows that are missing
/// in the last lines are any numbers.
pub(crate) fn set_abreast<T: Vectored + Storable>(
    rows: &[T],
    n: usize,
    lines: &mut [[T; ABREAST]],
) {
    if T::run(Abreast { rows, n, lines: lines.as_flattened_mut() }).is_ok() {
        return;
    }
    for (rows, lines) in rows.chunks(ABREAST * n).zip(lines.chunks_mut(n)) {
        for (i, row) in rows.chunks_exact(n).enumerate() {
            for (line, &x) in lines.iter_mut().zip(row) {
                line[i] = x;
            }
        }
    }
}

/// [`set_abreast`] undone.
pub(crate) fn set_apart<T: Vectored + Storable>(lines: &[[T; ABREAST]], n: usize, rows: &mut [T]) {
    if T::run(Apart { lines: lines.as_flattened(), n, rows: &mut *rows }).is_ok() {
        return;
    }
    for (rows, lines) in rows.chunks_mut(ABREAST * n).zip(lines.chunks(n)) {
        for (i, row) in rows.chunks_exact_mut(n).enumerate() {
            for (x, line) in row.iter_mut().zip(lines) {
                *x = line[i];
            }
        }
    }
}

struct Abreast<'a, T> {
    rows: &'a [T],
    n: usize,
    lines: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Abreast<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        let Self { rows, n, lines } = self;
        pack(v, lines, [rows.len() / n, n], ABREAST, rows, [n, 1]);
    }
}

struct Apart<'a, T> {
    lines: &'a [T],
    n: usize,
    rows: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Apart<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        let Self { lines, n, rows } = self;
        for (rows, lines) in rows.chunks_mut(ABREAST * n).zip(lines.chunks(ABREAST * n)) {
            let size = [n, rows.len() / n];
            pack(v, rows, size, n, lines, [ABREAST, 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::simd::{levels, with_level};

    #[test]
    fn rows_come_back_as_they_were() {
        for level in levels() {
            for (count, n) in
                (1..=35_usize).step_by(2).flat_map(|count| (1..=33).map(move |n| (count, n)))
            {
                let rows: Vec<f32> = (0..count * n).map(|i| i as f32).collect();
                let groups = count.div_ceil(ABREAST);
                let mut lines = vec![[-1.0; ABREAST]; groups * n];
                let mut back = vec![-1.0; rows.len()];
                with_level(level, || {
                    set_abreast(&rows, n, &mut lines);
                    set_apart(&lines, n, &mut back);
                });
                assert_eq!(rows, back, "{level:?} {count} {n}");
                for (i, &x) in rows.iter().enumerate() {
                    let (row, place) = (i / n, i % n);
                    assert_eq!(lines[row / ABREAST * n + place][row % ABREAST], x);
                }
            }
        }
    }
}
