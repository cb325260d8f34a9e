//! Matrix products, by strides: a transposed operand is never copied.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar, ShapeBuilder};

use super::gemm::{Matrix, ROW_STEP, at_once, gemm, gemm_plus};
use super::integer::{self, Beyond};
use super::shape::{broadcast, copied};
use super::threads::share_chunks;
use super::{Shape, Storable, Value};
use crate::error::{Error, Result};

/// `a @ b`: matrices, or stacks of matrices whose leading axes broadcast. Both have at least two
/// axes.
pub(crate) fn matmul<T: Multiply>(a: &Value<T>, b: &Value<T>) -> Result<Value<T>> {
    let (lead_a, [m, k]) = split(a);
    let (lead_b, [k2, n]) = split(b);
    if k != k2 {
        return Err(Error::Shape {
            op: "matmul",
            parameter: "other".into(),
            expected: format!(
                "a matrix of {k} rows, as many as the left operand of shape {:?} has columns",
                a.shape()
            ),
            found: b.shape().to_vec(),
        });
    }
    if lead_a.is_empty() && lead_b.is_empty() {
        return one(a, b, [m, k, n]);
    }
    let lead = broadcast("matmul", lead_a, lead_b)?;
    let mut shape = lead.clone();
    shape.extend([m, n]);
    super::shape::element_count("matmul", &shape)?;

    let strides = |v: &Value<T>| {
        let mut full = lead.clone();
        full.extend_from_slice(&v.shape()[v.rank() - 2..]);
        v.strides_as(&full)
    };
    let (strides_a, strides_b) = (strides(a), strides(b));
    if m * n * k == 0 {
        return Ok(Value::full(shape, T::ZERO));
    }
    let rank = lead.len();
    let (raw_a, raw_b) = (a.raw(), b.raw());
    let beyond = Beyond::default();
    let products = |first: usize, data: &mut [T]| {
        for (index, block) in (first..).zip(data.chunks_exact_mut(m * n)) {
            let (start_a, start_b) = (at(index, &lead, &strides_a), at(index, &lead, &strides_b));
            let x = operand(&raw_a[start_a..], &strides_a[rank..]);
            let y = operand(&raw_b[start_b..], &strides_b[rank..]);
            T::product([m, k, n], x, y, block, &beyond);
        }
    };
    let value = Value::written(shape, |data| match at_once([m, k, n], data.len() / (m * n)) {
        None => products(0, data),
        Some(count) => share_chunks([data], [count * m * n], &|part, [data]| {
            products(part * count, data);
        }),
    });
    beyond.check::<T>("matmul")?;
    Ok(value)
}

/// One product, the way most are: without a stack.
fn one<T: Multiply>(a: &Value<T>, b: &Value<T>, [m, k, n]: [usize; 3]) -> Result<Value<T>> {
    super::shape::element_count("matmul", &[m, n])?;
    let beyond = Beyond::default();
    let value = Value::written(copied(&[m, n]), |out| match m * n * k {
        0 => out.fill(T::ZERO),
        _ => T::product([m, k, n], matrix(a), matrix(b), out, &beyond),
    });
    beyond.check::<T>("matmul")?;
    Ok(value)
}

/// The product of two matrices, each as it is or, where `turned` says so, transposed, in the place
/// of `into`; the figures are those of [`matmul`] of such views. `None` where they are others.
pub(crate) fn product_into<T: FloatMultiply>(
    [a, b]: [&Value<T>; 2],
    turned: [bool; 2],
    into: Value<T>,
) -> Option<Value<T>> {
    let (left, right) = (Operand::of(a, turned[0])?, Operand::of(b, turned[1])?);
    let (&[m, k], &[k2, n]) = (&left.size, &right.size);
    if k != k2 || m * n * k == 0 {
        return None;
    }
    super::shape::element_count("matmul", &[m, n]).ok()?;
    Some(into.rewritten(copied(&[m, n]), |out| {
        T::float_product([m, k, n], left.matrix(a), right.matrix(b), out);
    }))
}

/// A matrix as an operand, without a view of its own.
struct Operand<T: Storable> {
    size: [usize; 2],
    strides: [usize; 2],
    /// A view that is small is a copy in its own order, as everywhere.
    copy: Option<Value<T>>,
}

impl<T: Storable> Operand<T> {
    fn of(value: &Value<T>, turned: bool) -> Option<Self> {
        let &[rows, columns] = value.shape() else { return None };
        let (size, strides) = ([rows, columns], value.steps());
        if !turned {
            return Some(Self { size, strides, copy: None });
        }
        let (size, strides) = ([columns, rows], [strides[1], strides[0]]);
        if !value.is_inline() {
            return Some(Self { size, strides, copy: None });
        }
        let copy = value.restrided(copied(&size), copied(&strides), 0);
        Some(Self { size, strides: copy.steps(), copy: Some(copy) })
    }

    fn matrix<'a>(&'a self, value: &'a Value<T>) -> Matrix<'a, T> {
        operand(self.copy.as_ref().unwrap_or(value).raw(), &self.strides)
    }
}

/// `a b + row` of two matrices, with the row's numbers added to those of each column; the figures
/// are those of one after the other, and stand in the place of `into`. `None` where they are no
/// matrices of this kind that fit.
pub(crate) fn plus_row<T: FloatMultiply>(
    a: &Value<T>,
    b: &Value<T>,
    row: &Value<T>,
    into: Value<T>,
) -> Option<Value<T>> {
    let (&[m, k], &[k2, n], &[columns]) = (a.shape(), b.shape(), row.shape()) else { return None };
    let plus = row.as_slice()?;
    if k != k2 || columns != n || m * n * k == 0 {
        return None;
    }
    super::shape::element_count("matmul", &[m, n]).ok()?;
    Some(into.rewritten(copied(&[m, n]), |out| {
        T::product_plus([m, k, n], matrix(a), matrix(b), plus, out);
    }))
}

/// Along so many elements a sum is one sum, whatever the shapes are: the figures do not depend on
/// whether a product is computed as a whole or by [`by_rows`].
pub(crate) const ONE_SUM: usize = super::gemm::KC;

/// `aᵀ b` of two matrices, in blocks of whole rows of about `part` elements: `take` gets where they
/// stand in the product, and what they are.
pub(crate) fn by_rows<T: FloatMultiply>(
    a: &Value<T>,
    b: &Value<T>,
    part: usize,
    take: &mut impl FnMut(std::ops::Range<usize>, &[T]),
) {
    let (&[k, m], &[_, n]) = (a.shape(), b.shape()) else {
        unreachable!("both are matrices");
    };
    let mut rows = (part / n.max(1)).max(1);
    if rows > ROW_STEP {
        rows -= rows % ROW_STEP;
    }
    let mut block = T::pool().take_filled(rows.min(m) * n);
    let (strides, y) = (a.steps(), matrix(b));
    for first in (0..m).step_by(rows) {
        let count = rows.min(m - first);
        let block = &mut block[..count * n];
        if k * n == 0 {
            block.fill(T::ZERO);
        } else {
            let x = Matrix {
                data: &a.raw()[first * strides[1]..],
                rows: strides[1],
                columns: strides[0],
            };
            T::float_product([count, k, n], x, y, block);
        }
        take(first * n..first * n + block.len(), block);
    }
    T::pool().give(block);
}

fn matrix<T: Storable>(value: &Value<T>) -> Matrix<'_, T> {
    operand(value.raw(), &value.steps())
}

fn operand<'a, T>(data: &'a [T], strides: &[usize]) -> Matrix<'a, T> {
    Matrix { data, rows: strides[0], columns: strides[1] }
}

/// Numbers that matrices are made of.
pub(crate) trait Multiply: Storable + LinalgScalar {
    /// `c = a b`, where `a` is m by k, `b` k by n, and `c` row-major m by n, with any content. What
    /// the type cannot hold is noted.
    fn product(
        size: [usize; 3],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        c: &mut [Self],
        beyond: &Beyond,
    );
}

/// Floats that matrices are made of.
pub(crate) trait FloatMultiply: Multiply {
    /// `c = a b`, as [`Multiply::product`].
    fn float_product(size: [usize; 3], a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: &mut [Self]);

    /// `c = a b + plus`, with a number for each column.
    fn product_plus(
        size: [usize; 3],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        plus: &[Self],
        c: &mut [Self],
    );
}

fn add_rows<T: LinalgScalar>(plus: &[T], c: &mut [T]) {
    for row in c.chunks_exact_mut(plus.len()) {
        row.iter_mut().zip(plus).for_each(|(c, &plus)| *c = *c + plus);
    }
}

macro_rules! multiply {
    (floats: $($f:ty)*; integers: $($i:ty)*;) => {
        $(impl Multiply for $f {
            fn product(
                size: [usize; 3],
                a: Matrix<'_, $f>,
                b: Matrix<'_, $f>,
                c: &mut [$f],
                _: &Beyond,
            ) {
                Self::float_product(size, a, b, c);
            }
        }

        impl FloatMultiply for $f {
            fn float_product(size: [usize; 3], a: Matrix<'_, $f>, b: Matrix<'_, $f>, c: &mut [$f]) {
                gemm(size, a, b, c).unwrap_or_else(|| portable(size, a, b, c));
            }
            fn product_plus(
                size: [usize; 3],
                a: Matrix<'_, $f>,
                b: Matrix<'_, $f>,
                plus: &[$f],
                c: &mut [$f],
            ) {
                let done = gemm_plus(size, a, b, plus, c);
                if done.is_none() {
                    portable(size, a, b, c);
                }
                if done != Some(true) {
                    add_rows(plus, c);
                }
            }
        })*
        $(impl Multiply for $i {
            fn product(
                size: [usize; 3],
                a: Matrix<'_, $i>,
                b: Matrix<'_, $i>,
                c: &mut [$i],
                beyond: &Beyond,
            ) {
                integer::product(size, a, b, c, beyond);
            }
        })*
    };
}

multiply! {
    floats: f32 f64;
    integers: i32 i64 u8;
}

/// By ndarray, on any CPU.
fn portable<T: LinalgScalar>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
) {
    let x = ArrayView2::from_shape((m, k).strides((a.rows, a.columns)), a.data);
    let y = ArrayView2::from_shape((k, n).strides((b.rows, b.columns)), b.data);
    let z = ArrayViewMut2::from_shape((m, n), c);
    let (Ok(x), Ok(y), Ok(mut z)) = (x, y, z) else {
        unreachable!("a value's strides stay inside its buffer");
    };
    general_mat_mul(T::one(), &x, &y, T::zero(), &mut z);
}

fn split<T: Storable>(v: &Value<T>) -> (&[usize], [usize; 2]) {
    let (lead, last) = v.shape().split_at(v.rank() - 2);
    (lead, [last[0], last[1]])
}

/// Where matrix `index` of a stack starts.
fn at(mut index: usize, lead: &Shape, strides: &[usize]) -> usize {
    let mut start = 0;
    for (&n, &stride) in lead.iter().zip(strides).rev() {
        start += index % n * stride;
        index /= n;
    }
    start
}
