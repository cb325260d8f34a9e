//! Functions of each element of values of any type, in one walk over memory. Those of floats that matter
//! for speed are formulas: see [`pass`](crate::formula::pass).

use super::rows::for_each_row;
use super::shape::copied;
use super::{Storable, Value};

/// The elements of `on` where the mask is true, those of `off` elsewhere; all broadcast to `shape`.
pub fn chosen_of<T: Storable>(
    shape: &[usize],
    mask: &Value<bool>,
    on: &Value<T>,
    off: &Value<T>,
) -> Value<T> {
    let strides = [mask.strides_as(shape), on.strides_as(shape), off.strides_as(shape)];
    let (mask, on, off) = (mask.raw(), on.raw(), off.raw());
    Value::build(copied(shape), |out| {
        for_each_row(shape, strides.each_ref().map(|steps| &steps[..]), |[i, j, k], n, steps| {
            if let [1, 1, 1] = steps {
                let pairs = on[j..j + n].iter().zip(&off[k..k + n]);
                let all = mask[i..i + n].iter().zip(pairs);
                out.extend(all.map(|(&mask, (&on, &off))| if mask { on } else { off }));
                return;
            }
            let [of_mask, of_on, of_off] = steps;
            out.extend((0..n).map(|at| match mask[i + at * of_mask] {
                true => on[j + at * of_on],
                false => off[k + at * of_off],
            }));
        });
    })
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
