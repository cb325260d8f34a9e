//! One pass over memory: maps and zips of values, in place where the buffer is free.
//!
//! There is one kernel an op, and it works in place. A result elsewhere is made block by block:
//! the block is copied to its place and the kernel runs on it while it is in the first cache.

use super::simd::{Kernel, dispatch};
use super::value::for_each_row;
use super::{Shape, Storable, Value};

/// Elements a block: a few KiB, so that a block stays in the first cache.
const BLOCK: usize = 2048;

/// A function of one element.
pub(crate) trait Map<T>: Copy {
    fn call<const FMA: bool>(self, x: T) -> T;
}

/// A function of two elements.
pub(crate) trait Zip<T>: Copy {
    fn call<const FMA: bool>(self, a: T, b: T) -> T;
}

/// The same function with its arguments exchanged.
#[derive(Clone, Copy)]
struct Swapped<F>(F);

impl<T, F: Zip<T>> Zip<T> for Swapped<F> {
    #[inline(always)]
    fn call<const FMA: bool>(self, a: T, b: T) -> T {
        self.0.call::<FMA>(b, a)
    }
}

struct MapKernel<'a, T, F>(&'a mut [T], F);

impl<T: Copy, F: Map<T>> Kernel for MapKernel<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for x in self.0.iter_mut() {
            *x = self.1.call::<FMA>(*x);
        }
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

/// `f` of every element.
pub(crate) fn map<T: Storable, F: Map<T>>(x: Arg<'_, T>, f: F) -> Value<T> {
    let x = match x {
        Arg::Own(mut value) => {
            if let Some(data) = value.as_padded_mut_slice() {
                dispatch(MapKernel(data, f));
                return value;
            }
            return map(Arg::Ref(&value), f);
        }
        Arg::Ref(value) => value,
    };
    if x.as_padded_inline().is_some() {
        let mut out = x.clone();
        if let Some(data) = out.as_padded_mut_slice() {
            dispatch(MapKernel(data, f));
        }
        return out;
    }
    match x.as_slice() {
        Some(data) => Value::build(Shape::from_slice(x.shape()), |out| {
            for block in data.chunks(BLOCK) {
                let start = out.len();
                out.extend_from_slice(block);
                dispatch(MapKernel(&mut out[start..], f));
            }
        }),
        None => map(Arg::Own(x.contiguous().into_owned()), f),
    }
}

/// `f` of every pair of elements of two values stretched to `shape`, which is their common shape.
pub(crate) fn zip<T: Storable, F: Zip<T>>(
    shape: &[usize],
    a: Arg<'_, T>,
    b: Arg<'_, T>,
    f: F,
) -> Value<T> {
    let (a, b) = match try_in_place(shape, a, &b, f) {
        Ok(done) => return done,
        Err(a) => match try_in_place(shape, b, &a, Swapped(f)) {
            Ok(done) => return done,
            Err(b) => (a, b),
        },
    };
    let (a, b) = (a.get(), b.get());
    match (a.as_slice(), b.as_slice()) {
        (Some(x), Some(y)) if a.shape() == b.shape() => {
            Value::build(Shape::from_slice(shape), |out| {
                for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
                    let start = out.len();
                    out.extend_from_slice(x);
                    dispatch(ZipKernel(&mut out[start..], y, f));
                }
            })
        }
        // The one that has the whole shape is copied, the other one is read by strides.
        _ if b.shape() == shape && (a.shape() != shape || !a.is_row_major()) => {
            let mut out = copy(b);
            zip_into(&mut out, a, Swapped(f));
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
        Some(data) => Value::from_slice(Shape::from_slice(x.shape()), data),
        None => x.contiguous().into_owned(),
    }
}

/// Writes `f(a, b)` over `a`, if `a` has the whole shape and may be written.
fn try_in_place<'a, T: Storable, F: Zip<T>>(
    shape: &[usize],
    a: Arg<'a, T>,
    b: &Arg<'_, T>,
    f: F,
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
        dispatch(ZipKernel(x, y, f));
        return Ok(out);
    }
    if out.as_mut_slice().is_none() {
        return Err(Arg::Own(out));
    }
    zip_into(&mut out, b, f);
    Ok(out)
}

/// Writes `f(out, b)` over `out`, which is row-major and not shared.
fn zip_into<T: Storable, F: Zip<T>>(out: &mut Value<T>, b: &Value<T>, f: F) {
    let shape = Shape::from_slice(out.shape());
    let own = super::shape::row_major(&shape);
    let Some(data) = out.as_mut_slice() else {
        unreachable!("the caller owns the buffer");
    };
    if let (Some(y), true) = (b.as_slice(), b.shape() == &shape[..]) {
        return dispatch(ZipKernel(data, y, f));
    }
    let raw = b.raw();
    let strides = b.strides_as(&shape);
    let mut row_of_b = Vec::new();
    for_each_row(&shape, [&own, &strides], |[at, start], n, [_, step]| {
        let row = &mut data[at..at + n];
        match step {
            0 => dispatch(ZipScalarKernel(row, raw[start], f)),
            1 => dispatch(ZipKernel(row, &raw[start..start + n], f)),
            _ => {
                row_of_b.clear();
                row_of_b.extend((0..n).map(|i| raw[start + i * step]));
                dispatch(ZipKernel(row, &row_of_b, f));
            }
        }
    });
}

/// `f` of every element and one scalar.
pub(crate) fn zip_scalar<T: Storable, F: Zip<T>>(x: Arg<'_, T>, scalar: T, f: F) -> Value<T> {
    #[derive(Clone, Copy)]
    struct With<T, F>(T, F);
    impl<T: Copy, F: Zip<T>> Map<T> for With<T, F> {
        #[inline(always)]
        fn call<const FMA: bool>(self, x: T) -> T {
            self.1.call::<FMA>(x, self.0)
        }
    }
    map(x, With(scalar, f))
}

/// `f` of every element, of another type.
pub(crate) fn convert<T: Storable, U: Storable>(x: &Value<T>, f: impl Fn(T) -> U) -> Value<U> {
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::build(Shape::from_slice(x.shape()), |out| out.extend(data.iter().map(|&v| f(v))))
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
    Value::build(Shape::from_slice(shape), |out| {
        for_each_row(shape, [&x, &y], |[i, j], n, [s, t]| match (s, t) {
            (1, 1) => out.extend(a[i..i + n].iter().zip(&b[j..j + n]).map(|(&a, &b)| f(a, b))),
            _ => out.extend((0..n).map(|k| f(a[i + k * s], b[j + k * t]))),
        });
    })
}
