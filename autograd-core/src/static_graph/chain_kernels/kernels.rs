//! What a chain computes of a block, where that is no kernel of an op: comparisons, choices,
//! conversions.

use super::blocks::Item;
use crate::array::Storable;
use crate::array::elementwise::ZipAny;
use crate::array::simd::{Kernel, dispatch};
use crate::ops::kernels::{integer_kernels, kernels};
use crate::ops::{Binary, IntoElement, Numeric};

/// Comparisons; the others are these with their operands exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

pub(super) fn compare<T: Storable>(test: Test, out: &mut [bool], a: &[T], b: &[T]) {
    match test {
        Test::Equal => each::<T, _>(Compare(out, a, b, |a, b| a == b)),
        Test::NotEqual => each::<T, _>(Compare(out, a, b, |a, b| a != b)),
        Test::Greater => each::<T, _>(Compare(out, a, b, |a, b| a > b)),
        Test::GreaterEqual => each::<T, _>(Compare(out, a, b, |a, b| a >= b)),
    }
}

/// Runs a loop; at the widest level where floats are in it, the others are too rare for that.
fn each<T: Storable, K: Kernel<Output = ()>>(kernel: K) {
    if const { T::ELEMENTS_ARE_FLOATS } { dispatch(kernel) } else { kernel.run::<false>() }
}

struct Compare<'a, T, F>(&'a mut [bool], &'a [T], &'a [T], F);

impl<T: Copy, F: Fn(T, T) -> bool> Kernel for Compare<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(out, a, b, test) = self;
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = test(*a, *b);
        }
    }
}

/// `on` where the mask is true, else `off`.
pub(super) fn choose<T: Storable>(out: &mut [T], mask: &[bool], on: &[T], off: &[T]) {
    dispatch(Choose(out, mask, on, off));
}

struct Choose<'a, T>(&'a mut [T], &'a [bool], &'a [T], &'a [T]);

impl<T: Copy> Kernel for Choose<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self(out, mask, on, off) = self;
        for (((out, mask), on), off) in out.iter_mut().zip(mask).zip(on).zip(off) {
            // Both are read, so that this is no branch.
            let (on, off) = (*on, *off);
            *out = if *mask { on } else { off };
        }
    }
}

pub(super) fn cast<T: IntoElement<U>, U: Item>(out: &mut [U], x: &[T]) {
    each::<U, _>(Cast(out, x));
}

struct Cast<'a, T, U>(&'a mut [U], &'a [T]);

impl<T: IntoElement<U>, U: Item> Kernel for Cast<'_, T, U> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (out, x) in self.0.iter_mut().zip(self.1) {
            *out = x.convert();
        }
    }
}

/// A type whose arithmetic a chain can have.
pub(super) trait Number: Item + Numeric {
    /// The kernel of a function and that of the function with its arguments exchanged.
    fn zips(op: Binary) -> [&'static dyn ZipAny<Self>; 2];
}

macro_rules! numbers {
    ($($t:ty: $zips:path,)*) => {$(
        impl Number for $t {
            fn zips(op: Binary) -> [&'static dyn ZipAny<Self>; 2] {
                $zips(op)
            }
        }
    )*};
}

numbers! {
    f32: kernels,
    f64: kernels,
    i32: integer_kernels,
    i64: integer_kernels,
    u8: integer_kernels,
}
