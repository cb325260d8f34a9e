//! Copies of transposed data, tile by tile. In the order of the result, each element would be read from
//! another cache line, and where lines are a power of two apart, few of them fit into a cache at once.

use super::rows::{Merged, for_each_row};
use super::shape::row_major;
use super::threads::each_chunk;
use super::{Shape, Storable};

/// Shorter rows are read from so few cache lines that these stay in the cache.
const MIN_COLUMNS: usize = 256;
/// The same limit if lines are a multiple of [`CACHE_ALIAS_BYTES`] apart, so that fewer of them fit.
const MIN_ALIASED_COLUMNS: usize = 32;
const CACHE_ALIAS_BYTES: usize = 512;
/// Fewer elements are not tiled.
pub(super) const MIN_TILED: usize = 8 * MIN_ALIASED_COLUMNS;
const CHUNK: usize = 16 * 1024;

/// The axis along which elements are contiguous, if it is not the innermost and tiles pay.
pub(super) fn contiguous_axis<T>(axes: &Merged<1>) -> Option<usize> {
    let (&(n, [step]), outer) = axes.split_last()?;
    let along = outer.iter().rposition(|&(m, [step])| step == 1 && m >= side::<T>())?;
    let apart = (step * size_of::<T>()).is_multiple_of(CACHE_ALIAS_BYTES);
    (step > 1 && n >= if apart { MIN_ALIASED_COLUMNS } else { MIN_COLUMNS }).then_some(along)
}

/// The side of a tile: a cache line for most types.
const fn side<T>() -> usize {
    if size_of::<T>() < 8 { 16 } else { 8 }
}

pub(super) fn copy_tiles<T: Storable>(data: &[T], axes: &Merged<1>, along: usize, out: &mut [T]) {
    let (count, [step]) = axes[0];
    let one = out.len() / count;
    let rows = (CHUNK / one).max(1);
    let rows = if along == 0 { rows.next_multiple_of(side::<T>()) } else { rows };
    each_chunk(out, rows * one, &|chunk, out| {
        let mut axes = axes.clone();
        axes[0].0 = out.len() / one;
        let data = &data[chunk * rows * step..];
        match const { side::<T>() } {
            8 => copy_planes::<T, 8>(data, &axes, along, out),
            _ => copy_planes::<T, 16>(data, &axes, along, out),
        }
    });
}

/// Copies plane by plane: a plane consists of the innermost axis and the contiguous axis `along`.
fn copy_planes<T: Storable, const S: usize>(
    data: &[T],
    axes: &Merged<1>,
    along: usize,
    out: &mut [T],
) {
    let last = axes.len() - 1;
    let size = [axes[along].0, axes[last].0];
    let ([planes, from, to], step) = planes(axes, along);
    for_each_row(&planes, [&from, &to], |[from, to], n, steps| {
        for i in 0..n {
            let (from, to) = (&data[from + i * steps[0]..], &mut out[to + i * steps[1]..]);
            copy_plane::<T, S>(from, axes[last].1[0], to, step, size);
        }
    });
}

/// Planes along each other axis, their steps in data and result, and `along`'s step in the result.
fn planes(axes: &Merged<1>, along: usize) -> ([Shape; 3], usize) {
    let lengths: Shape = axes.iter().map(|&(n, _)| n).collect();
    let steps = row_major(&lengths);
    let outer = |of: &dyn Fn(usize) -> usize| -> Shape {
        (0..axes.len() - 1).filter(|&axis| axis != along).map(of).collect()
    };
    let from = outer(&|axis| axes[axis].1[0]);
    ([outer(&|axis| lengths[axis]), from, outer(&|axis| steps[axis])], steps[along])
}

/// Copies rows of `m` elements, `step` apart, as columns of `n` elements; rows of the result are `to` apart.
fn copy_plane<T: Storable, const S: usize>(
    data: &[T],
    step: usize,
    out: &mut [T],
    to: usize,
    [m, n]: [usize; 2],
) {
    for column in (0..m).step_by(S) {
        for row in (0..n).step_by(S) {
            let (data, out) = (&data[row * step + column..], &mut out[column * to + row..]);
            let (height, width) = ((m - column).min(S), (n - row).min(S));
            if (height, width) != (S, S) {
                for i in 0..height {
                    for k in 0..width {
                        out[i * to + k] = data[k * step + i];
                    }
                }
                continue;
            }
            let mut tile = [[T::ZERO; S]; S];
            for k in 0..S {
                let row = &data[k * step..][..S];
                for i in 0..S {
                    tile[i][k] = row[i];
                }
            }
            for (i, column) in tile.iter().enumerate() {
                out[i * to..][..S].copy_from_slice(column);
            }
        }
    }
}
