//! Operands of a product, and panels: copies of a block whose order is that of the innermost loop.

use crate::array::Storable;
use crate::array::simd::Vectors;

/// One operand: element `[i, j]` is `data[i * rows + j * columns]`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    pub data: &'a [T],
    pub rows: usize,
    pub columns: usize,
}

impl<T> Matrix<'_, T> {
    pub fn transposed(self) -> Self {
        Self { data: self.data, rows: self.columns, columns: self.rows }
    }

    pub fn tail(self, i: usize, j: usize) -> Self {
        Self { data: &self.data[i * self.rows + j * self.columns..], ..self }
    }
}

const MAX_LANES: usize = 16;

/// Copies `count` rows of `depth` elements to panels of `width` rows, in which the elements of one column
/// are contiguous; missing rows are zeros.
#[inline(always)]
pub(super) fn pack<T: Storable, V: Vectors<T>>(
    v: V,
    panels: &mut [T],
    [count, depth]: [usize; 2],
    width: usize,
    from: Matrix<'_, T>,
) {
    if from.rows == 1 {
        // In the order of memory, which is faster than panel by panel.
        for p in 0..depth {
            let line = &from.data[p * from.columns..][..count];
            for (index, from) in line.chunks(width).enumerate() {
                let to = &mut panels[(index * depth + p) * width..][..width];
                // A length known at compile time needs no call.
                if from.len() == width {
                    to.copy_from_slice(&from[..width]);
                } else {
                    to[..from.len()].copy_from_slice(from);
                    to[from.len()..].fill(T::ZERO);
                }
            }
        }
        return;
    }
    for (index, panel) in panels.chunks_exact_mut(width * depth).enumerate() {
        let from = from.tail(index * width, 0);
        let rows = (count - index * width).min(width);
        if rows < width {
            panel.fill(T::ZERO);
        }
        if from.columns == 1 {
            transpose(v, panel, [rows, depth], width, from);
        } else {
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                for (i, to) in to[..rows].iter_mut().enumerate() {
                    *to = from.data[i * from.rows + p * from.columns];
                }
            }
        }
    }
}

/// Packs one panel of contiguous rows, in squares of vectors.
#[inline(always)]
fn transpose<T: Storable, V: Vectors<T>>(
    v: V,
    panel: &mut [T],
    [rows, depth]: [usize; 2],
    width: usize,
    from: Matrix<'_, T>,
) {
    for i in (0..rows).step_by(V::LANES) {
        let side = (rows - i).min(V::LANES);
        for p in (0..depth).step_by(V::LANES) {
            let length = (depth - p).min(V::LANES);
            let mut square = [v.splat(T::ZERO); MAX_LANES];
            let square = &mut square[..V::LANES];
            for (r, vector) in square.iter_mut().enumerate().take(side) {
                *vector = v.load(&from.data[(i + r) * from.rows + p..][..length]);
            }
            v.transpose(square);
            let places = panel[p * width..].chunks_exact_mut(width).take(length);
            for (to, &vector) in places.zip(&*square) {
                v.store(vector, &mut to[i..][..side]);
            }
        }
    }
}
