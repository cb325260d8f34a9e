//! One pass over memory: zips of values, and of a value and a number, in place where the buffer is free.
//!
//! There is one kernel an op, and it works in place. A result elsewhere is made block by block:
//! the block is copied to its place and the kernel runs on it while it is in the first cache.

use super::shape::copied;
use super::simd::{Kernel, dispatch};
use super::threads::each_chunk;
use super::value::for_each_row;
use super::{Storable, Value};

/// Elements a block: a few KiB, so that a block stays in the first cache.
const BLOCK: usize = 2048;
/// Elements a chunk, which one thread computes: a whole number of blocks.
const CHUNK: usize = 32 * BLOCK;

/// A function of two elements.
pub(crate) trait Zip<T>: Copy {
    fn call<const FMA: bool>(self, a: T, b: T) -> T;
}

// The loops below run behind these traits as trait objects: what is around a loop is
// compiled once an element type, and only the loops once a function.

/// A [`Zip`] over two slices of one length, written over the first.
pub(crate) trait ZipSlices<T> {
    fn run(&self, a: &mut [T], b: &[T]);
}

/// A [`Zip`] over a slice and one element, written over the slice.
pub(crate) trait ZipScalar<T> {
    fn run_scalar(&self, a: &mut [T], b: T);
}

/// Both of a function's forms.
pub(crate) trait ZipAny<T>: ZipSlices<T> + ZipScalar<T> + Sync {}

impl<T, F: ZipSlices<T> + ZipScalar<T> + Sync> ZipAny<T> for F {}

impl<T: Copy, F: Zip<T>> ZipSlices<T> for F {
    fn run(&self, a: &mut [T], b: &[T]) {
        dispatch(ZipKernel(a, b, *self));
    }
}

impl<T: Copy, F: Zip<T>> ZipScalar<T> for F {
    fn run_scalar(&self, a: &mut [T], b: T) {
        dispatch(ZipScalarKernel(a, b, *self));
    }
}

struct ZipKernel<'a, T, F>(&'a mut [T], &'a [T], F);

impl<T: Copy, F: Zip<T>> Kernel for ZipKernel<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (a, b) in self.0.iter_mut().zip(self.1) {
            *a = self.2.call::<FMA>(*a, *b);
        }
    }
}

struct ZipScalarKernel<'a, T, F>(&'a mut [T], T, F);

impl<T: Copy, F: Zip<T>> Kernel for ZipScalarKernel<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for a in self.0.iter_mut() {
            *a = self.2.call::<FMA>(*a, self.1);
        }
    }
}

/// A value that may be written, or only read.
pub(crate) enum Arg<'a, T: Storable> {
    Own(Value<T>),
    Ref(&'a Value<T>),
}

impl<T: Storable> Arg<'_, T> {
    fn get(&self) -> &Value<T> {
        match self {
            Self::Own(value) => value,
            Self::Ref(value) => value,
        }
    }
}

/// `f` of every element and one scalar.
pub(crate) fn zip_scalar<T: Storable>(
    x: Arg<'_, T>,
    scalar: T,
    f: &(dyn ZipScalar<T> + Sync),
) -> Value<T> {
    let mut x = match x {
        Arg::Own(value) => value,
        Arg::Ref(value) => value.clone(),
    };
    if let Some(data) = x.as_padded_mut_slice() {
        each_chunk(data, CHUNK, |_, part| f.run_scalar(part, scalar));
        return x;
    }
    let x = x.into_contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::written(copied(x.shape()), |out| {
        each_block(out, |start, block| {
            block.copy_from_slice(&data[start..start + block.len()]);
            f.run_scalar(block, scalar);
        });
    })
}

/// Shows each block of a result and where it starts, on threads where that pays.
fn each_block<T: Send>(out: &mut [T], run: impl Fn(usize, &mut [T]) + Sync) {
    each_chunk(out, CHUNK, |chunk, part| {
        for (index, block) in part.chunks_mut(BLOCK).enumerate() {
            run(chunk * CHUNK + index * BLOCK, block);
        }
    });
}

/// `f` of every pair of elements of two values stretched to `shape`, which is their common shape.
/// `swapped` is `f` with its arguments exchanged: whichever operand is free is written over.
pub(crate) fn zip<T: Storable>(
    shape: &[usize],
    a: Arg<'_, T>,
    b: Arg<'_, T>,
    f: &dyn ZipAny<T>,
    swapped: &dyn ZipAny<T>,
) -> Value<T> {
    let (a, b) = match try_in_place(shape, a, &b, f) {
        Ok(done) => return done,
        Err(a) => match try_in_place(shape, b, &a, swapped) {
            Ok(done) => return done,
            Err(b) => (a, b),
        },
    };
    let (a, b) = (a.get(), b.get());
    match (a.as_slice(), b.as_slice()) {
        (Some(x), Some(y)) if a.shape() == b.shape() => Value::written(copied(shape), |out| {
            each_block(out, |start, block| {
                block.copy_from_slice(&x[start..start + block.len()]);
                f.run(block, &y[start..start + block.len()]);
            });
        }),
        // The one that has the whole shape is copied, the other one is read by strides.
        _ if b.shape() == shape && (a.shape() != shape || !a.is_row_major()) => {
            let mut out = copy(b);
            zip_into(&mut out, a, swapped);
            out
        }
        _ => {
            let mut out = copy(&a.broadcast_to(shape));
            zip_into(&mut out, b, f);
            out
        }
    }
}

/// A row-major copy that nobody shares.
fn copy<T: Storable>(x: &Value<T>) -> Value<T> {
    match x.as_slice() {
        Some(data) => Value::from_slice(copied(x.shape()), data),
        None => x.contiguous().into_owned(),
    }
}

/// Writes `f(a, b)` over `a`, if `a` has the whole shape and may be written.
fn try_in_place<'a, T: Storable>(
    shape: &[usize],
    a: Arg<'a, T>,
    b: &Arg<'_, T>,
    f: &dyn ZipAny<T>,
) -> Result<Value<T>, Arg<'a, T>> {
    let b = b.get();
    let mut out = match a {
        // A copy of inline data is as good as the data itself.
        Arg::Ref(value) if value.shape() == shape && value.as_padded_inline().is_some() => {
            value.clone()
        }
        Arg::Own(value) if value.shape() == shape => value,
        other => return Err(other),
    };
    if let (Some(y), true) = (b.as_padded_inline(), b.shape() == shape)
        && let Some(x) = out.as_padded_mut_slice()
    {
        f.run(x, y);
        return Ok(out);
    }
    if out.as_mut_slice().is_none() {
        return Err(Arg::Own(out));
    }
    zip_into(&mut out, b, f);
    Ok(out)
}

/// Writes `f(out, b)` over `out`, which is row-major and not shared.
fn zip_into<T: Storable>(out: &mut Value<T>, b: &Value<T>, f: &dyn ZipAny<T>) {
    let shape = copied(out.shape());
    let own = super::shape::row_major(&shape);
    let Some(data) = out.as_mut_slice() else {
        unreachable!("the caller owns the buffer");
    };
    if let (Some(y), true) = (b.as_slice(), b.shape() == &shape[..]) {
        return each_chunk(data, CHUNK, |chunk, part| {
            f.run(part, &y[chunk * CHUNK..][..part.len()]);
        });
    }
    let raw = b.raw();
    let strides = b.strides_as(&shape);
    let mut row_of_b = Vec::new();
    for_each_row(&shape, [&own, &strides], |[at, start], n, [_, step]| {
        let row = &mut data[at..at + n];
        match step {
            0 => f.run_scalar(row, raw[start]),
            1 => f.run(row, &raw[start..start + n]),
            _ => {
                row_of_b.clear();
                row_of_b.extend((0..n).map(|i| raw[start + i * step]));
                f.run(row, &row_of_b);
            }
        }
    });
}

/// `f` of every element, of another type.
pub(crate) fn convert<T: Storable, U: Storable>(x: &Value<T>, f: impl Fn(T) -> U) -> Value<U> {
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::build(copied(x.shape()), |out| out.extend(data.iter().map(|&v| f(v))))
}

/// `f` of every pair of elements of two values stretched to `shape`, of another type.
pub(crate) fn convert_zip<A: Storable, B: Storable, U: Storable>(
    shape: &[usize],
    a: &Value<A>,
    b: &Value<B>,
    f: impl Fn(A, B) -> U,
) -> Value<U> {
    let (x, y) = (a.strides_as(shape), b.strides_as(shape));
    let (a, b) = (a.raw(), b.raw());
    Value::build(copied(shape), |out| {
        for_each_row(shape, [&x, &y], |[i, j], n, [s, t]| match (s, t) {
            (1, 1) => out.extend(a[i..i + n].iter().zip(&b[j..j + n]).map(|(&a, &b)| f(a, b))),
            _ => out.extend((0..n).map(|k| f(a[i + k * s], b[j + k * t]))),
        });
    })
}
