//! Products of matrices of floats, by strides: a transposed operand is never made real.
//!
//! The packed form is Goto's (Goto and van de Geijn 2008): blocks of both operands are copied to
//! panels that lie as the innermost loop reads them, and that loop keeps a tile of the result in
//! registers. What is too small or too narrow for packing to pay is read where it lies.

#![allow(clippy::needless_range_loop, reason = "an index names a place in several operands")]

use std::sync::{Mutex, PoisonError};

use super::Storable;
use super::pool::with_room;
use super::simd::{VectorKernel, Vectored, Vectors};
use super::threads::{num_threads, share};

/// One operand: element `[i, j]` stands at `i * rows + j * columns`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<T> Matrix<'_, T> {
    fn transposed(self) -> Self {
        Self { data: self.data, rows: self.columns, columns: self.rows }
    }
}

/// Along `k`: so much of two panels is multiplied before the tile is written. A panel of the left
/// operand is then a part of a first cache, and one of the right operand a part of a second.
pub(super) const KC: usize = 512;
/// Panels of the left operand that are packed at once: with `KC` they fill a part of a second
/// cache.
const LEFT_PANELS: usize = 32;
/// Panels of the right operand that are packed at once.
const RIGHT_PANELS: usize = 16;
/// Up to so many multiplications, packing costs more than it brings.
const SMALL: usize = 48 * 48 * 48;
/// Up to so many bytes of columns, a strip of the result is one vector wide.
const NARROW_BYTES: usize = 64;
/// Up to so many rows, the right operand is read too seldom for packing to pay.
const FEW_ROWS: usize = 40;
/// Up to so many bytes, the right operand is taken to stay in a cache.
const CACHED_BYTES: usize = 4 << 20;
/// As `FEW_ROWS`, where the right operand lies by columns, which are then multiplied one by one.
const FEW_DOTS: usize = 12;
/// From so many multiplications on, threads pay.
const SHARED: usize = 10_000_000;
/// So many rows at least a thread: each packs the right operand for itself.
const ROWS_A_THREAD: usize = 96;
/// Rows that all tiles divide.
pub(super) const ROW_STEP: usize = 12;

/// `c = a b`, where `a` is m by k, `b` k by n, and `c` row-major m by n, with any content. `None`
/// where this CPU has no vectors; then nothing is written.
pub(crate) fn gemm<T: Vectored + Storable>(
    size: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) -> Option<()> {
    gemm_plus(size, a, b, &[], c).map(|_| ())
}

/// [`gemm`], with a number for each column added to its sums where they are in registers anyway:
/// whether that was so comes back. No numbers are zeros.
pub(crate) fn gemm_plus<T: Vectored + Storable>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    plus: &[T],
    c: &mut [T],
) -> Option<bool> {
    debug_assert_eq!(c.len(), m * n);
    debug_assert!(plus.is_empty() || plus.len() == n);
    if n == 1 && m > 1 {
        // The column as a row: cᵀ = bᵀ aᵀ.
        return gemm([1, k, m], b.transposed(), a.transposed(), c).map(|()| false);
    }
    if m <= FEW_DOTS && b.columns != 1 && b.rows == 1 {
        let mut left = Vec::new();
        let a = with_gapless_rows([m, k], a, &mut left);
        return T::run(Dots { size: [m, k, n], a, b: b.transposed(), c }).ok().map(|()| false);
    }
    let narrow = n * size_of::<T>() <= NARROW_BYTES;
    // Strips go down all rows of the right operand again and again: it must stay in a cache.
    let cached = m == 1 || k * n * size_of::<T>() <= CACHED_BYTES;
    let few = m <= FEW_ROWS && cached;
    if b.columns == 1 && (few || narrow && a.columns == 1) || m * n * k <= SMALL {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        // Panels are made from any layout.
        let panels = m >= 4 && n * size_of::<T>() >= 4 * WIDEST * size_of::<f32>();
        let a = if panels { a } else { with_gapless_rows([m, k], a, &mut left) };
        let b = with_gapless_rows([k, n], b, &mut right);
        return T::run(Rows { size: [m, k, n], a, b, plus, c }).ok().map(|()| true);
    }
    let threads = num_threads().min(m / ROWS_A_THREAD);
    if m * n * k < SHARED || threads < 2 {
        return T::run(Packed { size: [m, k, n], a, b, c }).ok().map(|()| false);
    }
    // Each row is computed in the same way, whichever rows stand beside it.
    let rows = m.div_ceil(threads).next_multiple_of(ROW_STEP);
    let parts: Vec<_> = c.chunks_mut(rows * n).map(|c| Mutex::new((c, None))).collect();
    share(parts.len(), |part| {
        let mut part_of_c = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let (c, done) = &mut *part_of_c;
        let a = Matrix { data: &a.data[part * rows * a.rows..], ..a };
        *done = T::run(Packed { size: [c.len() / n, k, n], a, b, c }).ok();
    });
    let done =
        |part: Mutex<(_, Option<()>)>| part.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    parts.into_iter().map(done).collect::<Option<()>>().map(|()| false)
}

/// The matrix with gapless rows: itself, or a copy in `buffer`.
fn with_gapless_rows<'a, T: Storable>(
    [rows, columns]: [usize; 2],
    matrix: Matrix<'a, T>,
    buffer: &'a mut Vec<T>,
) -> Matrix<'a, T> {
    if matrix.columns == 1 {
        return matrix;
    }
    *buffer = with_room(rows * columns);
    for i in 0..rows {
        let start = i * matrix.rows;
        buffer.extend((0..columns).map(|j| matrix.data[start + j * matrix.columns]));
    }
    Matrix { data: buffer, rows: columns, columns: 1 }
}

/// Gapless rows times gapless columns; `b` is the right operand transposed.
struct Dots<'a, T> {
    size: [usize; 3],
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    c: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Dots<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        let [m, k, n] = self.size;
        // Summing the vectors up costs as much as four steps along a long row.
        if m >= 3 && k >= 4 * V::LANES {
            return self.by_rows(v);
        }
        if (3..=V::LANES).contains(&m) {
            return self.by_columns(v);
        }
        for j in 0..n {
            let column = &self.b.data[j * self.b.rows..][..k];
            for i in 0..m {
                self.c[i * n + j] = dot(v, &self.a.data[i * self.a.rows..][..k], column);
            }
        }
    }
}

impl<T: Storable> Dots<'_, T> {
    /// Vectors along the rows of both operands: as many rows of the left one at once as have their
    /// sums in registers, so that the right one is read once for all of them.
    #[inline(always)]
    fn by_rows<V: Vectors<T>>(&mut self, v: V) {
        let [m, ..] = self.size;
        let mut left = Buffer::new();
        let mut i = 0;
        while i < m {
            i += match m - i {
                11.. if V::REGISTERS >= 32 => self.rows::<12, V>(v, i, &mut left),
                9 | 10 if V::REGISTERS >= 32 => self.rows::<10, V>(v, i, &mut left),
                7 | 8 if V::REGISTERS >= 32 => self.rows::<8, V>(v, i, &mut left),
                5.. => self.rows::<6, V>(v, i, &mut left),
                _ => self.rows::<4, V>(v, i, &mut left),
            };
        }
    }

    /// Up to `R` rows of the result; how many comes back.
    #[inline(always)]
    fn rows<const R: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        left: &mut Buffer<T>,
    ) -> usize {
        let [m, k, n] = self.size;
        let count = (m - i).min(R);
        // Vectors of all rows side by side, with zeros behind the last numbers.
        let panel = left.of(k.div_ceil(V::LANES) * R * V::LANES);
        for (block, to) in panel.chunks_exact_mut(R * V::LANES).enumerate() {
            let start = block * V::LANES;
            let length = (k - start).min(V::LANES);
            for (r, to) in to.chunks_exact_mut(V::LANES).enumerate() {
                let (to, rest) = to.split_at_mut(if r < count { length } else { 0 });
                to.copy_from_slice(
                    &self.a.data[(i + r.min(count - 1)) * self.a.rows + start..][..to.len()],
                );
                rest.fill(T::ZERO);
            }
        }
        let mut j = 0;
        while j + 2 <= n {
            self.sums::<R, 2, V>(v, panel, [i, count], j);
            j += 2;
        }
        if j < n {
            self.sums::<R, 1, V>(v, panel, [i, count], j);
        }
        count
    }

    /// `N` columns of them.
    #[inline(always)]
    fn sums<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        panel: &[T],
        [i, count]: [usize; 2],
        j: usize,
    ) {
        let [_, k, n] = self.size;
        let right: [&[T]; N] = std::array::from_fn(|s| &self.b.data[(j + s) * self.b.rows..][..k]);
        let mut sums = [[v.splat(T::ZERO); R]; N];
        for (block, left) in panel.chunks_exact(R * V::LANES).enumerate() {
            let right: [V::Vector; N] =
                std::array::from_fn(|s| load(v, &right[s][block * V::LANES..]));
            for r in 0..R {
                let left = v.load(&left[r * V::LANES..]);
                for s in 0..N {
                    sums[s][r] = v.mul_add(left, right[s], sums[s][r]);
                }
            }
        }
        for (s, sums) in sums.iter().enumerate() {
            for (part, sums) in sums.chunks(V::LANES).enumerate() {
                let mut column = [T::ZERO; WIDEST];
                v.store(v.sums(sums), &mut column);
                let first = part * V::LANES;
                for (r, &sum) in
                    column.iter().enumerate().take(count.saturating_sub(first)).take(V::LANES)
                {
                    self.c[(i + first + r) * n + j + s] = sum;
                }
            }
        }
    }

    /// The left operand as one panel, a vector for each column of it: then a number of the right
    /// operand is multiplied with all rows at once, and no vector has to be summed up.
    #[inline(always)]
    fn by_columns<V: Vectors<T>>(&mut self, v: V) {
        let [m, k, n] = self.size;
        let mut left = Buffer::new();
        let panel = left.of(k * V::LANES);
        pack(panel, [m, k], V::LANES, self.a.data, [self.a.rows, 1]);
        let mut j = 0;
        while j + TALL <= n {
            self.columns::<TALL, V>(v, panel, j);
            j += TALL;
        }
        while j + 4 <= n {
            self.columns::<4, V>(v, panel, j);
            j += 4;
        }
        while j < n {
            self.columns::<1, V>(v, panel, j);
            j += 1;
        }
    }

    /// `R` columns of the result.
    #[inline(always)]
    fn columns<const R: usize, V: Vectors<T>>(&mut self, v: V, panel: &[T], j: usize) {
        let [m, k, n] = self.size;
        let right: [&[T]; R] = std::array::from_fn(|r| &self.b.data[(j + r) * self.b.rows..][..k]);
        let mut sums = [v.splat(T::ZERO); R];
        // Four steps at once: finding a place in each of so many lines costs as much as a step.
        let (whole, rest) = panel[..k * V::LANES].split_at(k / 4 * 4 * V::LANES);
        for (block, left) in whole.chunks_exact(4 * V::LANES).enumerate() {
            let left: [V::Vector; 4] = std::array::from_fn(|q| v.load(&left[q * V::LANES..]));
            for r in 0..R {
                let numbers = &right[r][4 * block..][..4];
                for q in 0..4 {
                    sums[r] = v.mul_add(v.splat(numbers[q]), left[q], sums[r]);
                }
            }
        }
        for (p, left) in (k / 4 * 4..).zip(rest.chunks_exact(V::LANES)) {
            let left = v.load(left);
            for r in 0..R {
                sums[r] = v.mul_add(v.splat(right[r][p]), left, sums[r]);
            }
        }
        let mut tile = [[T::ZERO; WIDEST]; R];
        for (to, sum) in tile.iter_mut().zip(sums) {
            v.store(sum, to);
        }
        for i in 0..m {
            for (r, to) in self.c[i * n + j..][..R].iter_mut().enumerate() {
                *to = tile[r][i];
            }
        }
    }
}

/// Columns of the result whose sums fill the registers.
const TALL: usize = 12;
/// Numbers in a vector, at most.
const WIDEST: usize = 16;

#[inline(always)]
fn dot<T: Storable, V: Vectors<T>>(v: V, mut x: &[T], mut y: &[T]) -> T {
    let mut sums = [v.splat(T::ZERO); 4];
    while let (Some((a, x_rest)), Some((b, y_rest))) =
        (x.split_at_checked(4 * V::LANES), y.split_at_checked(4 * V::LANES))
    {
        for (i, sum) in sums.iter_mut().enumerate() {
            let at = i * V::LANES;
            *sum = v.mul_add(v.load(&a[at..]), v.load(&b[at..]), *sum);
        }
        (x, y) = (x_rest, y_rest);
    }
    for (a, b) in x.chunks(V::LANES).zip(y.chunks(V::LANES)) {
        sums[0] = v.mul_add(load(v, a), load(v, b), sums[0]);
    }
    let sum = v.add(v.add(sums[0], sums[1]), v.add(sums[2], sums[3]));
    v.sum(sum)
}

/// The first `LANES` numbers, or as many as there are.
#[inline(always)]
fn load<T, V: Vectors<T>>(v: V, from: &[T]) -> V::Vector {
    if from.len() >= V::LANES { v.load(from) } else { v.load_part(from) }
}

#[inline(always)]
fn store<T, V: Vectors<T>>(v: V, x: V::Vector, to: &mut [T]) {
    if to.len() >= V::LANES { v.store(x, to) } else { v.store_part(x, to) }
}

/// Operands whose rows are gapless, read where they lie.
struct Rows<'a, T> {
    size: [usize; 3],
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    /// What is added to each column's sums, or nothing.
    plus: &'a [T],
    c: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Rows<'_, T> {
    #[inline(always)]
    fn run<V: Vectors<T>>(mut self, v: V) {
        let [m, _, n] = self.size;
        let mut i = 0;
        if n >= 4 * V::LANES && m >= 4 {
            return self.by_panels(v);
        }
        while n <= V::LANES && i + 8 <= m {
            i += self.strips::<8, 1, V>(v, i);
        }
        while i + 6 <= m {
            i += self.strips::<6, 2, V>(v, i);
        }
        while i + 4 <= m {
            i += self.strips::<4, 2, V>(v, i);
        }
        while i < m {
            i += self.strips::<1, 4, V>(v, i);
        }
    }
}

impl<T: Storable> Rows<'_, T> {
    /// As many rows at once as have their sums in registers, so that each vector of the right
    /// operand is loaded once for all of them; their numbers stand in a panel, side by side.
    #[inline(always)]
    fn by_panels<V: Vectors<T>>(&mut self, v: V) {
        let [m, ..] = self.size;
        let mut left = Buffer::new();
        let mut i = 0;
        while i < m {
            i += match m - i {
                12.. if V::REGISTERS >= 32 => self.panel::<12, V>(v, i, &mut left),
                10 | 11 if V::REGISTERS >= 32 => self.panel::<10, V>(v, i, &mut left),
                8 | 9 if V::REGISTERS >= 32 => self.panel::<8, V>(v, i, &mut left),
                6.. => self.panel::<6, V>(v, i, &mut left),
                _ => self.panel::<4, V>(v, i, &mut left),
            };
        }
    }

    /// Up to `R` rows of the result; how many comes back.
    #[inline(always)]
    fn panel<const R: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        left: &mut Buffer<T>,
    ) -> usize {
        let Self { size: [m, k, n], a, b, .. } = *self;
        let count = (m - i).min(R);
        let left = left.of(R * k);
        pack_rows::<T, R>(left, [count, k], &a.data[i * a.rows..], [a.rows, a.columns]);
        let mut j = 0;
        while j + 2 * V::LANES <= n {
            self.panel_strip::<R, 2, V>(v, left, b, [i, count], [j, 2 * V::LANES]);
            j += 2 * V::LANES;
        }
        while j < n {
            let width = (n - j).min(V::LANES);
            self.panel_strip::<R, 1, V>(v, left, b, [i, count], [j, width]);
            j += width;
        }
        count
    }

    #[inline(always)]
    fn panel_strip<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: &[T],
        b: Matrix<'_, T>,
        [i, count]: [usize; 2],
        [j, width]: [usize; 2],
    ) {
        let n = self.size[2];
        let mut sums = [[v.splat(T::ZERO); N]; R];
        for (p, a) in left.chunks_exact(R).enumerate() {
            let b = &b.data[p * b.rows + j..][..width];
            let b: [V::Vector; N] = std::array::from_fn(|s| load(v, &b[s * V::LANES..]));
            for r in 0..R {
                let a = v.splat(a[r]);
                for s in 0..N {
                    sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
                }
            }
        }
        self.plus::<R, N, V>(v, &mut sums, [j, width]);
        for (r, sums) in sums.into_iter().enumerate().take(count) {
            let out = &mut self.c[(i + r) * n + j..][..width];
            for (out, sum) in out.chunks_mut(V::LANES).zip(sums) {
                store(v, sum, out);
            }
        }
    }

    #[inline(always)]
    fn plus<const R: usize, const N: usize, V: Vectors<T>>(
        &self,
        v: V,
        sums: &mut [[V::Vector; N]; R],
        [j, width]: [usize; 2],
    ) {
        if self.plus.is_empty() {
            return;
        }
        let plus = &self.plus[j..][..width];
        let plus: [V::Vector; N] = std::array::from_fn(|s| load(v, &plus[s * V::LANES..]));
        for r in 0..R {
            for s in 0..N {
                sums[r][s] = v.add(sums[r][s], plus[s]);
            }
        }
    }

    /// `R` rows of the result, in strips of `N` vectors, of one, and the rest; `R` comes back.
    #[inline(always)]
    fn strips<const R: usize, const N: usize, V: Vectors<T>>(&mut self, v: V, i: usize) -> usize {
        let [_, _, n] = self.size;
        let mut j = 0;
        while j + N * V::LANES <= n {
            self.strip::<R, N, V>(v, i, j, N * V::LANES);
            j += N * V::LANES;
        }
        while j < n {
            let width = (n - j).min(V::LANES);
            self.strip::<R, 1, V>(v, i, j, width);
            j += width;
        }
        R
    }

    #[inline(always)]
    fn strip<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        i: usize,
        j: usize,
        width: usize,
    ) {
        let [_, k, n] = self.size;
        let rows: [&[T]; R] = std::array::from_fn(|r| &self.a.data[(i + r) * self.a.rows..][..k]);
        let mut sums = [[v.splat(T::ZERO); N]; R];
        for p in 0..k {
            let b = &self.b.data[p * self.b.rows + j..][..width];
            for s in 0..N {
                let b = load(v, &b[s * V::LANES..]);
                for r in 0..R {
                    sums[r][s] = v.mul_add(v.splat(rows[r][p]), b, sums[r][s]);
                }
            }
        }
        self.plus::<R, N, V>(v, &mut sums, [j, width]);
        for (r, sums) in sums.into_iter().enumerate() {
            let out = &mut self.c[(i + r) * n + j..][..width];
            for (out, sum) in out.chunks_mut(V::LANES).zip(sums) {
                store(v, sum, out);
            }
        }
    }
}

/// Operands that are copied to panels, block by block.
struct Packed<'a, T> {
    size: [usize; 3],
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    c: &'a mut [T],
}

impl<T: Storable> VectorKernel<T> for Packed<'_, T> {
    /// The sums of a tile, the vectors of the right operand and one number of the left one fill
    /// the registers. Six rows of four vectors want fewer loads a step than twelve of two.
    #[inline(always)]
    fn run<V: Vectors<T>>(self, v: V) {
        match (V::REGISTERS >= 32, self.size[2] <= V::LANES) {
            (true, false) => self.blocks::<6, 4, V>(v),
            (true, true) => self.blocks::<12, 1, V>(v),
            (false, false) => self.blocks::<6, 2, V>(v),
            (false, true) => self.blocks::<6, 1, V>(v),
        }
    }
}

impl<T: Storable> Packed<'_, T> {
    #[inline(always)]
    fn blocks<const R: usize, const N: usize, V: Vectors<T>>(self, v: V) {
        let Self { size: [m, k, n], a, b, c } = self;
        let width = N * V::LANES;
        let (mut left, mut right) = (Buffer::new(), Buffer::new());
        for j0 in (0..n).step_by(RIGHT_PANELS * width) {
            let columns = (n - j0).min(RIGHT_PANELS * width);
            // What is left over is no wider than it must be.
            let whole = columns / width * width;
            let rest = (columns - whole).next_multiple_of(V::LANES);
            for p0 in (0..k).step_by(KC) {
                let depth = (k - p0).min(KC);
                let right = right.of((whole + rest) * depth);
                let (panels, last) = right.split_at_mut(whole * depth);
                let from = &b.data[b.rows * p0 + b.columns * j0..];
                let steps = [b.columns, b.rows];
                pack(panels, [whole, depth], width, from, steps);
                if rest > 0 {
                    pack(last, [columns - whole, depth], rest, &from[b.columns * whole..], steps);
                }
                for i0 in (0..m).step_by(LEFT_PANELS * R) {
                    let rows = (m - i0).min(LEFT_PANELS * R);
                    let left = left.of(rows.next_multiple_of(R) * depth);
                    let from = &a.data[a.rows * i0 + a.columns * p0..];
                    pack_rows::<T, R>(left, [rows, depth], from, [a.rows, a.columns]);
                    let mut c = Out { c: &mut c[i0 * n..][..rows * n], n, add: p0 > 0 };
                    for (index, right) in panels.chunks_exact(width * depth).enumerate() {
                        c.write::<R, N, V>(v, left, right, j0 + index * width);
                    }
                    match rest / V::LANES {
                        0 => {}
                        1 => c.write::<R, 1, V>(v, left, last, j0 + whole),
                        2 if N > 2 => c.write::<R, 2, V>(v, left, last, j0 + whole),
                        3 if N > 3 => c.write::<R, 3, V>(v, left, last, j0 + whole),
                        _ => c.write::<R, N, V>(v, left, last, j0 + whole),
                    }
                }
            }
        }
    }
}

/// Rows of the result.
struct Out<'a, T> {
    c: &'a mut [T],
    n: usize,
    /// Whether the products of earlier panels stand there.
    add: bool,
}

impl<T: Storable> Out<'_, T> {
    /// The products of all left panels and one right panel, from column `j` on.
    #[inline(always)]
    fn write<const R: usize, const N: usize, V: Vectors<T>>(
        &mut self,
        v: V,
        left: &[T],
        right: &[T],
        j: usize,
    ) {
        let width = N * V::LANES;
        let depth = right.len() / width;
        let columns = (self.n - j).min(width);
        let panels = left.chunks_exact(R * depth);
        for (left, out) in panels.zip(self.c.chunks_mut(R * self.n)) {
            let tile = tile::<T, R, N, V>(v, left, right);
            // A whole tile goes from the registers to its place.
            if out.len() == R * self.n && columns == width {
                for r in 0..R {
                    let out = &mut out[r * self.n + j..][..width];
                    for s in 0..N {
                        let (out, mut sum) = (&mut out[s * V::LANES..], tile[r][s]);
                        if self.add {
                            sum = v.add(sum, v.load(out));
                        }
                        v.store(sum, out);
                    }
                }
                continue;
            }
            for (out, sums) in out.chunks_exact_mut(self.n).zip(tile) {
                for (out, mut sum) in out[j..][..columns].chunks_mut(V::LANES).zip(sums) {
                    if self.add {
                        sum = v.add(sum, load(v, out));
                    }
                    store(v, sum, out);
                }
            }
        }
    }
}

/// The product of two panels.
#[inline(always)]
fn tile<T: Storable, const R: usize, const N: usize, V: Vectors<T>>(
    v: V,
    left: &[T],
    right: &[T],
) -> [[V::Vector; N]; R] {
    let mut sums = [[v.splat(T::ZERO); N]; R];
    for (a, b) in left.chunks_exact(R).zip(right.chunks_exact(N * V::LANES)) {
        let b: [V::Vector; N] = std::array::from_fn(|s| v.load(&b[s * V::LANES..]));
        for r in 0..R {
            let a = v.splat(a[r]);
            for s in 0..N {
                sums[r][s] = v.mul_add(a, b[s], sums[r][s]);
            }
        }
    }
    sums
}

/// Copies `count` lines of `depth` numbers to panels of `width` lines, in which the numbers at one
/// depth stand side by side; missing lines are zeros. `across` steps from line to line, `along`
/// along a line.
#[inline(always)]
fn pack<T: Storable>(
    panels: &mut [T],
    [count, depth]: [usize; 2],
    width: usize,
    from: &[T],
    [across, along]: [usize; 2],
) {
    for (index, panel) in panels.chunks_exact_mut(width * depth).enumerate() {
        let first = index * width;
        let lines = (count - first).min(width);
        let from = &from[first * across..];
        if lines < width {
            panel.fill(T::ZERO);
        }
        if across == 1 {
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                to[..lines].copy_from_slice(&from[p * along..][..lines]);
            }
            continue;
        }
        // Several lines at once, so that what is written lies side by side.
        let together = if along == 1 { lines / 8 * 8 } else { 0 };
        for line in (0..together).step_by(8) {
            let from: [&[T]; 8] = std::array::from_fn(|r| &from[(line + r) * across..][..depth]);
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                let numbers = std::array::from_fn(|r| from[r][p]);
                if let Some(to) = to[line..].first_chunk_mut::<8>() {
                    *to = numbers;
                }
            }
        }
        for line in together..lines {
            let from = &from[line * across..];
            for (p, to) in panel.chunks_exact_mut(width).enumerate() {
                to[line] = from[p * along];
            }
        }
    }
}

/// [`pack`] for panels of `R` lines: gapless ones are read side by side, and lines that lie side by
/// side are copied so.
#[inline(always)]
fn pack_rows<T: Storable, const R: usize>(
    panels: &mut [T],
    [count, depth]: [usize; 2],
    from: &[T],
    [across, along]: [usize; 2],
) {
    let whole = if across == 1 || along == 1 { count / R } else { 0 };
    let (full, rest) = panels.split_at_mut(whole * R * depth);
    for (index, panel) in full.chunks_exact_mut(R * depth).enumerate() {
        let from = &from[index * R * across..];
        let (panel, _) = panel.as_chunks_mut::<R>();
        if across == 1 {
            for (p, to) in panel.iter_mut().enumerate() {
                if let Some(from) = from[p * along..].first_chunk() {
                    *to = *from;
                }
            }
        } else {
            let lines: [&[T]; R] = std::array::from_fn(|r| &from[r * across..][..depth]);
            for (p, to) in panel.iter_mut().enumerate() {
                *to = std::array::from_fn(|r| lines[r][p]);
            }
        }
    }
    if count > whole * R {
        let from = &from[whole * R * across..];
        pack(rest, [count - whole * R, depth], R, from, [across, along]);
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Memory for panels, from the pool and back to it.
struct Buffer<T: Storable>(Vec<T>);

impl<T: Storable> Buffer<T> {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// From the start of a cache line on: a vector that lies in two costs twice as much.
    fn of(&mut self, len: usize) -> &mut [T] {
        let room = len + LINE / size_of::<T>();
        if self.0.len() < room {
            T::pool().give(std::mem::replace(&mut self.0, T::pool().take_filled(room)));
        }
        let first = self.0.as_ptr().align_offset(LINE).min(room - len);
        &mut self.0[first..][..len]
    }
}

impl<T: Storable> Drop for Buffer<T> {
    fn drop(&mut self) {
        T::pool().give(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::simd::{Level, levels, with_level};
    use crate::array::threads::with_num_threads;

    /// Small integers: every sum is exact, so every path must give the same.
    fn number(i: usize) -> i32 {
        (i * 7919 % 23) as i32 - 11
    }

    /// Element `[i, j]` of a matrix in one of four layouts.
    struct Layout {
        rows: usize,
        columns: usize,
        len: usize,
    }

    fn layouts([m, n]: [usize; 2]) -> [Layout; 4] {
        let of = |rows, columns| Layout {
            rows,
            columns,
            len: (m.max(1) - 1) * rows + (n.max(1) - 1) * columns + 1,
        };
        // Row-major, transposed, strided, stretched along the rows.
        [of(n, 1), of(1, m), of(3 * n + 2, 3), of(0, 1)]
    }

    fn check<T: Vectored + Storable>(size: [usize; 3], from: impl Fn(i32) -> T) {
        let [m, k, n] = size;
        for a in layouts([m, k]) {
            for b in layouts([k, n]) {
                let x: Vec<i32> = (0..a.len).map(number).collect();
                let y: Vec<i32> = (0..b.len).map(|i| number(i + 5)).collect();
                let exact: Vec<i32> = (0..m * n)
                    .map(|at| {
                        let (i, j) = (at / n, at % n);
                        let term =
                            |p| x[i * a.rows + p * a.columns] * y[p * b.rows + j * b.columns];
                        (0..k).map(term).sum()
                    })
                    .collect();
                let expected: Vec<T> = exact.iter().map(|&sum| from(sum)).collect();
                let (x, y): (Vec<T>, Vec<T>) =
                    (x.into_iter().map(&from).collect(), y.into_iter().map(&from).collect());
                let left = Matrix { data: &x, rows: a.rows, columns: a.columns };
                let right = Matrix { data: &y, rows: b.rows, columns: b.columns };
                for level in levels() {
                    let mut c = vec![from(99); m * n];
                    let done = with_level(level, || gemm(size, left, right, &mut c));
                    match done {
                        Some(()) => assert!(c == expected, "{size:?} at {level:?}"),
                        None => assert_eq!(level, Level::Baseline),
                    }
                    let row: Vec<T> = (0..n).map(|j| from(number(j))).collect();
                    let done = with_level(level, || gemm_plus(size, left, right, &row, &mut c));
                    let plus = |at: usize| from(exact[at] + number(at % n));
                    if done == Some(true) {
                        assert!(c == (0..m * n).map(plus).collect::<Vec<T>>(), "{size:?} plus");
                    }
                }
            }
        }
    }

    #[test]
    fn every_path_and_layout() {
        let sizes = [
            [1, 1, 1],
            [1, 70, 1],
            [1, 129, 200],
            [200, 129, 1],
            [4, 3, 2],
            [5, 6, 7],
            [8, 8, 8],
            [9, 20, 31],
            [3, 300, 77],
            [8, 65, 40],
            [12, 256, 32],
            [10, 200, 33],
            [7, 77, 20],
            [3, 64, 5],
            [13, 257, 33],
            [40, 30, 10],
            [50, 300, 16],
            [25, 17, 100],
            [193, 40, 70],
        ];
        for size in sizes {
            check(size, |i| i as f32);
            check(size, f64::from);
        }
    }

    #[test]
    fn more_than_one_block_each_way() {
        check([200, 520, 33], |i| i as f32);
        check([14, 260, 2100], f64::from);
    }

    #[test]
    fn threads_change_no_bit() {
        let [m, k, n] = [300, 260, 200];
        let x: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.37).sin()).collect();
        let y: Vec<f32> = (0..k * n).map(|i| (i as f32 * 0.11).cos()).collect();
        let left = Matrix { data: &x, rows: k, columns: 1 };
        let right = Matrix { data: &y, rows: n, columns: 1 };
        let product = |threads| {
            let mut c = vec![0.0; m * n];
            let done = with_num_threads(threads, || gemm([m, k, n], left, right, &mut c));
            (done, c)
        };
        let one = product(1);
        assert!([2, 3, 7].into_iter().all(|threads| product(threads) == one));
    }

    #[test]
    fn sums_are_accurate() {
        let k = 1000;
        let x: Vec<f32> = (0..k * 40).map(|i| ((i * 37 % 1009) as f32 / 1009.0) - 0.3).collect();
        let left = Matrix { data: &x, rows: k, columns: 1 };
        let mut c = vec![0.0; 40 * 40];
        if gemm([40, k, 40], left, left.transposed(), &mut c).is_none() {
            return;
        }
        for (at, &c) in c.iter().enumerate() {
            let [a, b] = [at / 40, at % 40].map(|row| &x[row * k..][..k]);
            let exact: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            assert!((f64::from(c) - exact).abs() < 1e-5 * exact.abs().max(10.0), "{c} {exact}");
        }
    }
}
