//! One pass over memory: zips of values, and of a value and a number, in place where the buffer is free.
//!
//! A function has a loop that works in place and one that writes elsewhere. Operands of other
//! layouts are copied to the place of the result block by block, and the loop in place runs on a
//! block while it is in the first cache.

use super::INLINE_BYTES;
use super::deferred::{Elements, PIECE, Steps};
use super::feed::{Feed, Walk};
use super::rows::for_each_row;
use super::shape::{copied, same};
use super::simd::{Kernel, SliceKernel, dispatch, dispatch_slices};
use super::threads::{each_grain, each_light_grain};
use super::value::fits_inline;
use super::{Storable, Value};

/// Elements a block: a few KiB, so that a block stays in the first cache.
const BLOCK: usize = 2048;

/// A function of two elements.
pub trait Zip<T>: Copy {
    /// Whether it has a loop that writes elsewhere. Where the function itself is most of the work,
    /// a copy before costs little, and the loop is left out.
    const ELSEWHERE: bool = true;
    /// Whether it is one instruction, whose result no instruction set changes.
    const ARITHMETIC: bool = false;

    fn call<const FMA: bool>(self, a: T, b: T) -> T;
}

/// How many elements a tensor stores inline. They are computed without choosing an instruction set:
/// the call would take longer than the loop.
const fn inline_len<T>() -> usize {
    INLINE_BYTES / size_of::<T>()
}

// The loops below run behind these traits as trait objects: what is around a loop is
// compiled once an element type, and only the loops once a function.

/// A [`Zip`] over two slices of one length, written over the first or elsewhere.
pub trait ZipSlices<T> {
    fn run(&self, a: &mut [T], b: &[T]);
    /// Of a block at a time.
    fn run_onto(&self, out: &mut [T], a: &[T], b: &[T]);
}

/// A [`Zip`] over a slice and one element, written over the slice or elsewhere.
pub trait ZipScalar<T> {
    fn run_scalar(&self, a: &mut [T], b: T);
    /// Of a block at a time.
    fn run_scalar_onto(&self, out: &mut [T], a: &[T], b: T);
}

/// Both of a function's forms.
pub trait ZipAny<T>: ZipSlices<T> + ZipScalar<T> + Sync {}

impl<T, F: ZipSlices<T> + ZipScalar<T> + Sync> ZipAny<T> for F {}

impl<T: Copy, F: Zip<T>> ZipSlices<T> for F {
    fn run(&self, a: &mut [T], b: &[T]) {
        let inline = const { inline_len::<T>() };
        if F::ARITHMETIC && a.len() == inline && b.len() == inline {
            return ZipKernel(a, b, *self).run::<false>();
        }
        dispatch(ZipKernel(a, b, *self));
    }

    fn run_onto(&self, out: &mut [T], a: &[T], b: &[T]) {
        if F::ELSEWHERE {
            return dispatch_slices(OntoKernel(*self), out, (a, b, &[]));
        }
        out.copy_from_slice(a);
        self.run(out, b);
    }
}

impl<T: Copy, F: Zip<T>> ZipScalar<T> for F {
    fn run_scalar(&self, a: &mut [T], b: T) {
        if F::ARITHMETIC && a.len() == const { inline_len::<T>() } {
            return ZipScalarKernel(a, b, *self).run::<false>();
        }
        dispatch(ZipScalarKernel(a, b, *self));
    }

    fn run_scalar_onto(&self, out: &mut [T], a: &[T], b: T) {
        if F::ELSEWHERE {
            return dispatch_slices(ScalarOntoKernel(b, *self), out, (a, &[], &[]));
        }
        out.copy_from_slice(a);
        self.run_scalar(out, b);
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

struct OntoKernel<F>(F);

impl<T: Copy, F: Zip<T>> SliceKernel<T> for OntoKernel<F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self, out: &mut [T], (a, b, _): (&[T], &[T], &[T])) {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = self.0.call::<FMA>(*a, *b);
        }
    }
}

struct ScalarOntoKernel<T, F>(T, F);

impl<T: Copy, F: Zip<T>> SliceKernel<T> for ScalarOntoKernel<T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self, out: &mut [T], (a, _, _): (&[T], &[T], &[T])) {
        for (out, a) in out.iter_mut().zip(a) {
            *out = self.1.call::<FMA>(*a, self.0);
        }
    }
}

/// `f` over a whole slice and another one of its length, on threads where that pays.
pub fn over<T: Storable>(f: &dyn ZipAny<T>, x: &mut [T], y: &[T]) {
    each_light_grain(x, &|start, part| f.run(part, &y[start..start + part.len()]));
}

/// `f` over a whole slice and a number, on threads where that pays.
pub fn over_scalar<T: Storable>(f: &(dyn ZipScalar<T> + Sync), x: &mut [T], scalar: T) {
    each_grain(x, &|_, part| f.run_scalar(part, scalar));
}

/// A value that may be written, or only read.
pub enum Arg<'a, T: Storable> {
    Own(Value<T>),
    Ref(&'a Value<T>),
}

impl<T: Storable> Arg<'_, T> {
    pub fn get(&self) -> &Value<T> {
        match self {
            Self::Own(value) => value,
            Self::Ref(value) => value,
        }
    }

    fn into_owned(self) -> Value<T> {
        match self {
            Self::Own(value) => value,
            Self::Ref(value) => value.clone(),
        }
    }
}

/// `f` of every element and one scalar.
pub fn zip_scalar<T: Storable>(
    x: Arg<'_, T>,
    scalar: T,
    f: &(dyn ZipScalar<T> + Sync),
) -> Value<T> {
    let mut x = x.into_owned();
    if let Some(data) = x.as_padded_mut_slice() {
        over_scalar(f, data, scalar);
        return x;
    }
    if let Some(element) = x.uniform() {
        let mut result = [element];
        f.run_scalar(&mut result, scalar);
        return Value::scalar(result[0]).broadcast_to(x.shape());
    }
    let x = x.into_contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::written(copied(x.shape()), |out| {
        each_block(out, |start, block| {
            f.run_scalar_onto(block, &data[start..start + block.len()], scalar);
        });
    })
}

/// Shows each block of a result and where it starts, on threads where that pays.
pub fn each_block<T: Send>(out: &mut [T], run: impl Fn(usize, &mut [T]) + Sync) {
    each_grain(out, &|start, part| {
        for (index, block) in part.chunks_mut(BLOCK).enumerate() {
            run(start + index * BLOCK, block);
        }
    });
}

/// `f` of every pair of elements of two values broadcast to `shape`, which is their common shape.
/// `swapped` is `f` with its arguments exchanged: whichever operand is free is written over.
pub fn zip<T: Storable>(
    shape: &[usize],
    a: Arg<'_, T>,
    b: Arg<'_, T>,
    f: &dyn ZipAny<T>,
    swapped: &dyn ZipAny<T>,
) -> Value<T> {
    if a.get().shape() == shape
        && let Some(element) = b.get().uniform()
    {
        return zip_scalar(a, element, f);
    }
    if b.get().shape() == shape
        && let Some(element) = a.get().uniform()
    {
        return zip_scalar(b, element, swapped);
    }
    if fits_inline::<T>(shape.iter().product()) && !same(a.get().shape(), b.get().shape()) {
        // Inline values are broadcast by copying.
        let (mut out, other) = (a.get().broadcast_to(shape), b.get().broadcast_to(shape));
        if let (Some(x), Some(y)) = (out.as_padded_mut_slice(), other.as_padded_inline()) {
            f.run(x, y);
            return out;
        }
    }
    a.get().will_be_read(shape);
    b.get().will_be_read(shape);
    let whole = |x: &Value<T>| x.shape() == shape && x.is_row_major();
    // Only floats are deferred.
    if const { T::ELEMENTS_ARE_FLOATS }
        && (a.get().is_deferred() || b.get().is_deferred())
        && whole(a.get())
        && whole(b.get())
    {
        return zip_deferred(a, b, f, swapped);
    }
    let (a, b) = match try_in_place(shape, a, &b, f) {
        Ok(done) => return done,
        Err(a) => match try_in_place(shape, b, &a, swapped) {
            Ok(done) => return done,
            Err(b) => (a, b),
        },
    };
    let (a, b) = (a.get(), b.get());
    Value::written(copied(shape), |out| match (a.in_memory(), b.in_memory()) {
        (Some(x), Some(y)) if whole(a) && whole(b) => each_block(out, |start, block| {
            let part = start..start + block.len();
            f.run_onto(block, &x[part.clone()], &y[part]);
        }),
        // One is copied to the place of the result, if possible one that lies like it; the other is
        // read by strides.
        _ if whole(b) => zip_strided(shape, out, b, a, swapped),
        _ => zip_strided(shape, out, a, b, f),
    })
}

/// [`zip`] of row-major values of the same shape that are not both in memory: in one pass.
fn zip_deferred<T: Storable>(
    mut a: Arg<'_, T>,
    mut b: Arg<'_, T>,
    f: &dyn ZipAny<T>,
    swapped: &dyn ZipAny<T>,
) -> Value<T> {
    let over = |own: &mut Value<T>, other: &Value<T>, f: &dyn ZipAny<T>| {
        let (other, steps) = (other.elements()?, own.take_steps()?);
        each_block(own.as_mut_slice()?, |start, block| {
            for (index, piece) in block.chunks_mut(PIECE).enumerate() {
                let start = start + index * PIECE;
                steps.run_over(piece);
                other.with_pieces(start, piece.len(), |other| f.run(piece, other));
            }
        });
        Some(())
    };
    if let Arg::Own(own) = &mut a
        && over(own, b.get(), f).is_some()
    {
        return a.into_owned();
    }
    if let Arg::Own(own) = &mut b
        && over(own, a.get(), swapped).is_some()
    {
        return b.into_owned();
    }
    let (Some(x), Some(y)) = (a.get().elements(), b.get().elements()) else {
        unreachable!("the caller has seen that they are row-major");
    };
    // What is in memory is read from there.
    let (x, y, f) = if matches!(x, Elements::Slice(_)) { (y, x, swapped) } else { (x, y, f) };
    Value::written(copied(a.get().shape()), |out| {
        each_block(out, |start, block| {
            for (index, piece) in block.chunks_mut(PIECE).enumerate() {
                let start = start + index * PIECE;
                x.write(start, piece);
                y.with_pieces(start, piece.len(), |y| f.run(piece, y));
            }
        });
    })
}

/// Writes `f(a, b)`, both broadcast to `shape`.
fn zip_strided<T: Storable>(
    shape: &[usize],
    out: &mut [T],
    a: &Value<T>,
    b: &Value<T>,
    f: &dyn ZipAny<T>,
) {
    let strides = b.strides_as(shape);
    each_light_grain(out, &|start, part| {
        let (mut a, mut walk) = (Feed::new(a, shape, start), Walk::new(shape, &strides, start));
        let blocks = (start..).step_by(BLOCK).zip(part.chunks_mut(BLOCK));
        if walk.is_short() {
            let mut b = Feed::walking(b.raw(), walk);
            for (at, block) in blocks {
                a.advance(block.len());
                b.advance(block.len());
                f.run_onto(block, a.block(at, block.len()), b.block(at, block.len()));
            }
            return;
        }
        for (at, block) in blocks {
            a.advance(block.len());
            block.copy_from_slice(a.block(at, block.len()));
            zip_rows(block, b.raw(), &mut walk, f);
        }
    });
}

/// Writes `f(out, b)` over `out`, for the next elements of a walk through `b`.
fn zip_rows<T: Storable>(out: &mut [T], b: &[T], walk: &mut Walk, f: &dyn ZipAny<T>) {
    let mut gathered = Vec::new();
    let mut rest = out;
    walk.runs(rest.len(), |start, n, step| {
        let (row, others) = std::mem::take(&mut rest).split_at_mut(n);
        rest = others;
        match step {
            0 => f.run_scalar(row, b[start]),
            1 => f.run(row, &b[start..start + n]),
            _ => {
                gathered.clear();
                gathered.extend((0..n).map(|i| b[start + i * step]));
                f.run(row, &gathered);
            }
        }
    });
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
    let Some(steps) = out.take_steps() else { return Err(Arg::Own(out)) };
    zip_into(&mut out, &steps, b, f);
    Ok(out)
}

/// Writes `f(out, b)` over `out`, which is row-major and not shared; before that, the steps.
fn zip_into<T: Storable>(out: &mut Value<T>, steps: &Steps<T>, b: &Value<T>, f: &dyn ZipAny<T>) {
    let shape = copied(out.shape());
    let Some(data) = out.as_mut_slice() else {
        unreachable!("the caller owns the buffer");
    };
    let strides = b.strides_as(&shape);
    each_light_grain(data, &|start, part| {
        let mut walk = Walk::new(&shape, &strides, start);
        if walk.is_short() {
            let mut b = Feed::walking(b.raw(), walk);
            for (at, block) in (start..).step_by(BLOCK).zip(part.chunks_mut(BLOCK)) {
                steps.run_over(block);
                b.advance(block.len());
                f.run(block, b.block(at, block.len()));
            }
            return;
        }
        let most = if steps.is_empty() { part.len() } else { BLOCK };
        for block in part.chunks_mut(most) {
            steps.run_over(block);
            zip_rows(block, b.raw(), &mut walk, f);
        }
    });
}

/// The elements of `on` where the mask is true, those of `off` elsewhere; all broadcast to `shape`.
pub fn chosen_of<T: Storable>(
    shape: &[usize],
    mask: &Value<bool>,
    on: &Value<T>,
    off: &Value<T>,
) -> Value<T> {
    on.will_be_read(shape);
    off.will_be_read(shape);
    Value::written(copied(shape), |out| {
        each_grain(out, &|start, part| {
            let mut at = start;
            let mut mask = Feed::new(mask, shape, at);
            let (mut on, mut off) = (Feed::new(on, shape, at), Feed::new(off, shape, at));
            for block in part.chunks_mut(BLOCK) {
                let n = block.len();
                mask.advance(n);
                on.advance(n);
                off.advance(n);
                let (on, off) = (on.block(at, n), off.block(at, n));
                dispatch(ChosenKernel { out: block, mask: mask.block(at, n), on, off });
                at += n;
            }
        });
    })
}

struct ChosenKernel<'a, T> {
    out: &'a mut [T],
    mask: &'a [bool],
    on: &'a [T],
    off: &'a [T],
}

impl<T: Copy> Kernel for ChosenKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // Copies of some at a time: of two places the compiler would choose one to read from, an element
        // after the other.
        let (out, rest) = self.out.as_chunks_mut::<16>();
        let ((masks, mask), (ons, on)) = (self.mask.as_chunks::<16>(), self.on.as_chunks::<16>());
        let (offs, off) = self.off.as_chunks::<16>();
        for (((out, mask), on), off) in out.iter_mut().zip(masks).zip(ons).zip(offs) {
            let (mask, on, off) = (*mask, *on, *off);
            *out = std::array::from_fn(|i| if mask[i] { on[i] } else { off[i] });
        }
        for (((out, mask), on), off) in rest.iter_mut().zip(mask).zip(on).zip(off) {
            *out = if *mask { *on } else { *off };
        }
    }
}

/// `f` of every element, of another type.
pub fn convert<T: Storable, U: Storable>(x: &Value<T>, f: impl Fn(T) -> U) -> Value<U> {
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::written(copied(x.shape()), |out| {
        out.iter_mut().zip(data).for_each(|(to, &v)| *to = f(v));
    })
}

/// `f` of every pair of elements of two values broadcast to `shape`, of another type.
pub fn convert_zip<A: Storable, B: Storable, U: Storable>(
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
