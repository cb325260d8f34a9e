//! Along one axis: where the extreme is, and running sums.

use super::call::{call, linear};
use super::reduce::{Max, Min};
use super::table::{
    Attr, Form, Gradient, OpDef, Type, arithmetic, entries, exactly, number, position, reduced,
};
use super::{Binary, Caller, Numeric, pairs};
use crate::array::pick::{self, Around};
use crate::array::reduce::Fold;
use crate::array::shape::axis as check_axis;
use crate::array::{DType, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{Lost, Tensor};

entries! {
    ALONG:

    ARGMAX = OpDef {
        run: |op, x, at| number!(x, x => best("argmax", &x, op.int(0), at, Max)),
        ..best_op("argmax")
    };

    ARGMIN = OpDef {
        run: |op, x, at| number!(x, x => best("argmin", &x, op.int(0), at, Min)),
        ..best_op("argmin")
    };

    CUMSUM = OpDef {
        attrs: &[("axis", Type::Int), ("from_end", Type::Flag)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            position(op.int(0), x.dims.len())?;
            Ok(vec![arithmetic(Binary::Add, x)?.clone()])
        },
        run: |op, x, at| number!(x, x => cumsum(&x, op.int(0), op.flag(1), at)),
        ..OpDef::new("cumsum")
    };
}

const fn best_op(name: &'static str) -> OpDef {
    OpDef {
        attrs: &[("axis", Type::Int)],
        infer: |op, inputs| {
            let [x] = exactly(inputs)?;
            let x = arithmetic(Binary::Add, x)?;
            Ok(vec![Form::new(DType::Int64, reduced(&x.dims, &[op.int(0)], false)?)])
        },
        gradient: Gradient::None,
        ..OpDef::new(name)
    }
}

/// The position along an axis of the element that beats all others; the first of equals.
fn best<T: Numeric>(
    op: &'static str,
    x: &Tensor<T>,
    axis: isize,
    caller: Caller,
    fold: impl Fold<T> + Sync,
) -> Result<Tensor<i64>> {
    let position = check_axis(op, axis, x.ndim())?;
    let around = Around::new(x.shape(), position);
    if around.n == 0 {
        return Err(Error::shape(
            op,
            RECEIVER,
            format!("of one element or more along axis {axis}"),
            x.shape(),
        ));
    }
    let mut shape = x.shape_owned();
    shape.remove(position);
    let lost = Lost::without_derivative(op, caller, x);
    let x = x.read();
    let x = x.contiguous();
    let data = x.as_slice().unwrap_or(&[]);
    let value = Value::written(shape, |out| pick::best(data, around, fold, out));
    Ok(Tensor::new(value).with_lost(lost))
}

/// Sums of the elements up to each along an axis, or from each on.
fn cumsum<T: Numeric>(
    x: &Tensor<T>,
    axis: isize,
    from_end: bool,
    caller: Caller,
) -> Result<Tensor<T>> {
    let position = check_axis("cumsum", axis, x.ndim())?;
    let around = Around::new(x.shape(), position);
    let value = T::running("cumsum", x.read().into_owned(), around, from_end)?;
    let back = |(axis, from_end): (isize, bool), dy: Tensor<T>| summed_up(&dy, axis, !from_end);
    let along = |(axis, from_end), dx: &Tensor<T>, _: &[usize]| summed_up(dx, axis, from_end);
    Ok(linear("cumsum", caller, x, value, (axis, from_end), back, along))
}

#[track_caller]
fn summed_up<T: Numeric>(x: &Tensor<T>, axis: isize, from_end: bool) -> Result<Tensor<T>> {
    call(&CUMSUM, [Attr::Int(axis), Attr::Flag(from_end)], [x.untyped()])
}

/// # Along an axis
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Where along an axis, which is removed, the greatest element is: the first of equal
        /// ones, and the first NaN if there is one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 3.0, 2.0], [6.0, 5.0, 6.0]]);
        /// assert_eq!(x.argmax(1).to_vec(), [1, 0]);
        /// ```
        pub fn argmax, try_argmax(&self, axis: isize) -> Tensor<i64>,
            Axis | Shape if "there is no such axis or it has length 0" {
            call(&ARGMAX, [Attr::Int(axis)], [self.untyped()])
        }

        /// Where along an axis, which is removed, the least element is: the first of equal
        /// ones, and the first NaN if there is one.
        pub fn argmin, try_argmin(&self, axis: isize) -> Tensor<i64>,
            Axis | Shape if "there is no such axis or it has length 0" {
            call(&ARGMIN, [Attr::Int(axis)], [self.untyped()])
        }

        /// The sums of the elements up to and with each, along an axis.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([1.0, 2.0, 3.0]).cumsum(0).to_vec(), [1.0, 3.0, 6.0]);
        /// ```
        pub fn cumsum, try_cumsum(&self, axis: isize) -> Tensor<T>,
            Axis | Overflow if "there is no such axis, or an integer sum is outside of the element type" {
            summed_up(self, axis, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_the_extreme() {
        let x = Tensor::from([1.0, f64::NAN, 7.0, f64::NAN]);
        assert_eq!((x.argmax(0).item(), x.argmin(0).item()), (1, 1));
        assert!(Tensor::<f32>::zeros([2, 0]).try_argmax(1).is_err());
        assert_eq!(Tensor::<f32>::zeros([0, 2]).argmax(1).shape(), [0]);
    }
}
