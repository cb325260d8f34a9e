//! Sums and products of integers: exact in any order, or an error. They are computed in a wider
//! type; only the result must fit the element type.

use std::ops::Range;
use std::sync::OnceLock;

use num_traits::{CheckedAdd, PrimInt, SaturatingMul};

use super::gemm::Matrix;
use super::pick::{AxisShape, changed};
use super::reduce::{SUMS_PER_WRITE, TILE, at_once, each_row, repeated, shared_tree};
use super::simd::{Kernel, dispatch};
use super::threads::each_chunk_of;
use super::{Shape, Storable, Value};
use crate::error::{Error, Result};

pub trait Integer: Storable + CheckedAdd + Into<i128> + TryFrom<i128> {
    /// A type that holds the sum of any [`PART`] elements.
    type Wide: Wide + From<Self>;
}

impl Integer for u8 {
    type Wide = i64;
}
impl Integer for i32 {
    type Wide = i64;
}
impl Integer for i64 {
    type Wide = i128;
}

/// The number of elements summed in [`Integer::Wide`].
const PART: usize = 1 << 31;

/// The type in which integers are accumulated.
pub trait Wide: PrimInt + SaturatingMul + Default + Send + Sync + From<bool> + Into<i128> {}

impl Wide for i64 {}
impl Wide for i128 {}

/// Joins two partial products or sums, which begin with the neutral element: 1 or 0, the number of `PRODUCT`.
/// A saturated product remains out of range, unless a factor is 0.
#[inline(always)]
fn join<const PRODUCT: bool, W: Wide>(a: W, b: W) -> W {
    if PRODUCT { a.saturating_mul(&b) } else { a + b }
}

/// The first result that is out of range of its element type, if any, with its value if that is known.
#[derive(Default)]
pub struct Overflow(OnceLock<Option<i128>>);

impl Overflow {
    #[cold]
    pub fn note(&self, found: Option<i128>) {
        let _ = self.0.set(found);
    }

    fn narrow<T: Integer>(&self, total: i128, reportable: impl Fn(i128) -> Option<i128>) -> T {
        T::try_from(total).unwrap_or_else(|_| {
            self.note(reportable(total));
            T::ZERO
        })
    }

    #[inline]
    pub fn check<T: Storable>(self, op: &'static str) -> Result<()> {
        match self.0.into_inner() {
            None => Ok(()),
            Some(found) => {
                let found = found.map(|found| found.to_string());
                Err(Error::Overflow { op, element: T::ELEMENT_NAME, found })
            }
        }
    }
}

/// The sums or products along sorted `axes`, which keep length 1.
pub fn total_axes<T: Integer, const PRODUCT: bool>(
    op: &'static str,
    x: &Value<T>,
    axes: &[usize],
) -> Result<Value<T>> {
    let mut shape = Shape::from_slice(x.shape());
    axes.iter().for_each(|&axis| shape[axis] = 1);
    let overflow = Overflow::default();
    // A saturated product is reported as an overflow without its value.
    let is_exact = |found: i128| !PRODUCT || found.unsigned_abs() < i64::MAX as u128;
    let narrow = |found: i128| overflow.narrow(found, |found| is_exact(found).then_some(found));
    let value = if let (Some(element), Some(_)) = (x.uniform(), axes.first())
        && !shape.contains(&0)
    {
        let count = axes.iter().map(|&axis| x.shape()[axis]).product();
        let all = repeated(element.into(), count, PRODUCT.into(), join::<PRODUCT, i128>);
        Value::scalar(narrow(all)).broadcast_to(&shape)
    } else if axes.len() == x.rank() {
        let x = x.contiguous();
        Value::full(shape, narrow(of_row::<T, PRODUCT>(x.as_slice().unwrap_or(&[]))))
    } else {
        let (x, around) = grouped(x, axes);
        let data = x.as_slice().unwrap_or(&[]);
        Value::written(shape, &mut |out| match around.inner {
            1 => each_row(data, out, &|row| narrow(of_row::<T, PRODUCT>(row))),
            _ => along_columns::<T, PRODUCT>(data, around, out, &narrow),
        })
    };
    overflow.check::<T>(op)?;
    Ok(value)
}

/// Row-major elements, and their shape around one axis, along which they are to be joined.
fn grouped<T: Integer>(x: &Value<T>, axes: &[usize]) -> (Value<T>, AxisShape) {
    let shape = x.shape();
    let lengths = |axes: &[usize]| axes.iter().map(|&axis| shape[axis]).product::<usize>();
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let (outer, n) = (lengths(&kept), lengths(axes));
    let first = axes.first().copied().unwrap_or(shape.len());
    let adjacent = axes.iter().enumerate().all(|(i, &axis)| axis == first + i);
    let inner = shape[(first + axes.len()).min(shape.len())..].iter().product::<usize>().max(1);
    if adjacent && n <= PART {
        return (x.contiguous().into_owned(), AxisShape { outer: outer / inner, n, inner });
    }
    // The kept axes first, so that the elements to join are a row.
    let of = |all: &[usize]| kept.iter().chain(axes).map(|&axis| all[axis]).collect();
    let moved = x.restrided(of(shape), of(&x.strides()), 0).into_contiguous();
    (moved, AxisShape { outer, n, inner: 1 })
}

struct Row<'a, T, const PRODUCT: bool>(&'a [T]);

impl<T: Integer, const PRODUCT: bool> Kernel for Row<'_, T, PRODUCT> {
    type Output = T::Wide;
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> T::Wide {
        let start = T::Wide::from(PRODUCT);
        self.0.iter().fold(start, |all, &x| join::<PRODUCT, _>(all, T::Wide::from(x)))
    }
}

fn of_row<T: Integer, const PRODUCT: bool>(row: &[T]) -> i128 {
    let branch = |range: Range<usize>| dispatch(Row::<T, PRODUCT>(&row[range])).into();
    let most = at_once(row.len()).min(PART);
    shared_tree((row.len(), row.len()), [1, most], &branch, &join::<PRODUCT, i128>)
}

/// Joins the elements of each column; rows begin `stride` elements apart.
struct Columns<'a, T: Integer, const PRODUCT: bool>(&'a mut [T::Wide], &'a [T], usize);

impl<T: Integer, const PRODUCT: bool> Kernel for Columns<'_, T, PRODUCT> {
    type Output = ();
    const WIDE: bool = false;

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(sums, data, stride) = self;
        for row in data.chunks(stride) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum = join::<PRODUCT, _>(*sum, T::Wide::from(x));
            }
        }
    }
}

fn along_columns<T: Integer, const PRODUCT: bool>(
    data: &[T],
    around: AxisShape,
    out: &mut [T],
    narrow: &(impl Fn(i128) -> T + Sync),
) {
    let AxisShape { n, inner, .. } = around;
    // Tiles of columns, whose sums stay in the L1 cache.
    let tile = inner.min(TILE);
    each_chunk_of(data.len() / SUMS_PER_WRITE, out, inner, &|block, out| {
        let data = &data[block * n * inner..][..n * inner];
        let mut sums = vec![T::Wide::default(); tile];
        for (at, out) in out.chunks_mut(tile).enumerate() {
            let sums = &mut sums[..out.len()];
            sums.fill(PRODUCT.into());
            if n > 0 {
                dispatch(Columns::<T, PRODUCT>(sums, &data[at * tile..], inner));
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = narrow((*sum).into()));
        }
    });
}

/// Adds two elements; overflow is recorded and gives 0.
pub fn plus<T: Integer>(overflow: &Overflow) -> impl Fn(T, T) -> T + Sync {
    |a, b| {
        a.checked_add(&b).unwrap_or_else(|| {
            overflow.note(Some(a.into() + b.into()));
            T::ZERO
        })
    }
}

pub trait Additions<T> {
    fn add<A: Copy + Send + Sync>(&self, data: &mut [A], plus: impl Fn(A, T) -> A + Sync);
}

pub fn added<T: Integer>(
    op: &'static str,
    x: Value<T>,
    additions: &impl Additions<T>,
) -> Result<Value<T>> {
    let overflow = Overflow::default();
    let sums = changed(x.clone(), |data| additions.add(data, plus(&overflow)));
    if overflow.0.get().is_none() {
        return Ok(sums);
    }
    // A partial sum overflowed, but the result may be in range: repeat in a wider type.
    let overflow = Overflow::default();
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    let mut sums: Vec<T::Wide> = data.iter().map(|&x| T::Wide::from(x)).collect();
    additions.add(&mut sums, |sum, x| sum + T::Wide::from(x));
    let value = Value::written(Shape::from_slice(x.shape()), &mut |out| {
        out.iter_mut()
            .zip(&sums)
            .for_each(|(out, sum)| *out = overflow.narrow((*sum).into(), Some));
    });
    overflow.check::<T>(op)?;
    Ok(value)
}

/// A sum of products: the lower 128 bits, and how often they overflowed.
#[derive(Clone, Copy, Default)]
struct Exact(i128, i64);

impl Exact {
    #[inline(always)]
    fn add(&mut self, product: i128) {
        let (sum, over) = self.0.overflowing_add(product);
        self.0 = sum;
        if over {
            self.1 += if product < 0 { -1 } else { 1 };
        }
    }

    fn narrow<T: Integer>(self, overflow: &Overflow) -> T {
        match self {
            Self(sum, 0) => overflow.narrow(sum, Some),
            Self(..) => {
                overflow.note(None);
                T::ZERO
            }
        }
    }
}

/// `c = a b`, as a [`MatrixProduct`](super::matmul::MatrixProduct).
pub fn product<T: Integer>(
    [m, k, n]: [usize; 3],
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    overflow: &Overflow,
) {
    let mut sums = vec![Exact::default(); n];
    for (i, c) in c.chunks_exact_mut(n).enumerate().take(m) {
        sums.fill(Exact::default());
        for p in 0..k {
            let x: i128 = a.data[i * a.rows + p * a.columns].into();
            for (j, sum) in sums.iter_mut().enumerate() {
                let y: i128 = b.data[p * b.rows + j * b.columns].into();
                sum.add(x * y);
            }
        }
        c.iter_mut().zip(&sums).for_each(|(c, sum)| *c = sum.narrow(overflow));
    }
}
