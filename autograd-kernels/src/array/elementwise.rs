//! Elementwise functions of values of any type, in one pass over memory. The float functions whose speed
//! matters are formulas: see [`pass`](crate::formula::pass).

use super::feed::BlockReader;
use super::shape::copied;
use super::{Storable, Value};

const BLOCK: usize = 1024;

/// The elements of `on` where `mask` is true, of `off` elsewhere; all are broadcast to `shape`.
pub fn chosen_of<T: Storable>(
    shape: &[usize],
    mask: &Value<bool>,
    on: &Value<T>,
    off: &Value<T>,
) -> Value<T> {
    let mut mask = BlockReader::new(mask, shape, 0);
    let (mut on, mut off) = (BlockReader::new(on, shape, 0), BlockReader::new(off, shape, 0));
    Value::written(copied(shape), &mut |out| {
        for (at, out) in out.chunks_mut(BLOCK).enumerate() {
            let (start, n) = (at * BLOCK, out.len());
            let pairs = on.next(start, n).iter().zip(off.next(start, n));
            for ((to, &mask), (&on, &off)) in out.iter_mut().zip(mask.next(start, n)).zip(pairs) {
                *to = if mask { on } else { off };
            }
        }
    })
}

pub fn convert<T: Storable, U: Storable>(x: &Value<T>, f: impl Fn(T) -> U) -> Value<U> {
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    Value::written(copied(x.shape()), &mut |out| {
        for (to, &v) in out.iter_mut().zip(data) {
            *to = f(v);
        }
    })
}

/// Applies `f` to every pair of elements, broadcast to `shape`; the result may have another type.
pub fn convert_zip<A: Storable, B: Storable, U: Storable>(
    shape: &[usize],
    a: &Value<A>,
    b: &Value<B>,
    f: impl Fn(A, B) -> U,
) -> Value<U> {
    zip_blocks(shape, a, b, &|a, b, out| {
        for (to, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *to = f(a, b);
        }
    })
}

// Not generic over the function: compiled once for the element types.
fn zip_blocks<A: Storable, B: Storable, U: Storable>(
    shape: &[usize],
    a: &Value<A>,
    b: &Value<B>,
    f: &dyn Fn(&[A], &[B], &mut [U]),
) -> Value<U> {
    let (mut a, mut b) = (BlockReader::new(a, shape, 0), BlockReader::new(b, shape, 0));
    Value::written(copied(shape), &mut |out| {
        for (at, out) in out.chunks_mut(BLOCK).enumerate() {
            let (start, n) = (at * BLOCK, out.len());
            f(a.next(start, n), b.next(start, n), out);
        }
    })
}
