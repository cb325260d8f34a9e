//! Matrix products.

use std::panic::Location;

use super::call::finish;
use super::table::form::{Dims, Form};
use super::table::forms::{arithmetic, broadcast, exactly, same_dtype};
use super::table::values::number;
use super::table::{OpDef, entries};
use super::{Binary, Caller, Float, Numeric, expect, joined, trace};
use crate::array::{Shape, Value, matmul};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{
    PushRule, SavedAttr, SavedInput, Tensor, is_grad_enabled, unrecorded, with_push,
};

entries! {
    PRODUCTS:

    MATMUL = OpDef {
        infer: |_, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            arithmetic(Binary::Mul, a)?;
            Ok(vec![Form::new(a.dtype, product_dims(&a.dims, &b.dims)?)])
        },
        run: |_, values, at| number!(values, (a, b) => Numeric::matmul(&a, &b, at)),
        ..OpDef::new("matmul")
    };
}

fn product_dims(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    if a.is_empty() || b.is_empty() {
        return Err("takes vectors, matrices or stacks of matrices, found a scalar".to_owned());
    }
    let (rows, k) = (a.len().checked_sub(2).map(|i| a[i]), a[a.len() - 1]);
    let (k2, columns) = match b.len().checked_sub(2) {
        Some(i) => (b[i], Some(b[i + 1])),
        None => (b[0], None),
    };
    if let (Some(k), Some(k2)) = (k, k2)
        && k != k2
    {
        return Err(format!("the inner lengths differ: {k} and {k2}"));
    }
    let lead = |dims: &[Option<usize>]| Dims::from_slice(&dims[..dims.len().saturating_sub(2)]);
    let mut out = broadcast(&lead(a), &lead(b))?;
    out.extend(rows);
    out.extend(columns);
    Ok(out)
}

/// The matrices behind the operands: a vector on the left is a row, one on the right a column.
fn product<T: Numeric>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Value<T>> {
    for (t, parameter) in [(a, RECEIVER), (b, "other")] {
        if t.ndim() == 0 {
            return Err(Error::Shape {
                op: "matmul",
                parameter: parameter.into(),
                expected: "a vector, a matrix or a stack of matrices".into(),
                found: vec![],
            });
        }
    }
    let (x, y) = (a.read(), b.read());
    let row = (x.rank() == 1).then(|| Value::clone(&x).reshaped(Shape::from_slice(&[1, x.len()])));
    let column =
        (y.rank() == 1).then(|| Value::clone(&y).reshaped(Shape::from_slice(&[y.len(), 1])));
    let product = matmul::matmul(row.as_ref().unwrap_or(&x), column.as_ref().unwrap_or(&y));
    let out = product.map_err(|error| match error.into() {
        Error::Shape { op, parameter, .. } => Error::Shape {
            op,
            parameter,
            expected: format!(
                "of {} rows, as many as the left operand of shape {:?} has columns",
                a.shape()[a.ndim() - 1],
                a.shape()
            ),
            found: b.shape().to_vec(),
        },
        error => error,
    })?;
    if row.is_none() && column.is_none() {
        return Ok(out);
    }
    let mut shape = Shape::from_slice(out.shape());
    if column.is_some() {
        shape.pop();
    }
    if row.is_some() {
        shape.remove(shape.len() - 1 - usize::from(column.is_none()));
    }
    Ok(out.reshaped(shape))
}

pub(super) fn integer<T: Numeric>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    Ok(unrecorded("matmul", caller, [a, b], product(a, b)?))
}

pub(super) fn float<T: Float>(a: &Tensor<T>, b: &Tensor<T>, caller: Caller) -> Result<Tensor<T>> {
    let value = product(a, b)?;
    let wants = [a.is_recorded(), b.is_recorded()];
    let kept = (
        wants[1].then(|| SavedInput::at(0, a)),
        wants[0].then(|| SavedInput::at(1, b)),
        SavedAttr(shapes(a, b)),
    );
    Ok(finish("matmul", caller, [a, b], value, with_push::<T, _, _>(Tangent, kept), pull))
}

/// `y = a b`: `dy = da b + a db`.
struct Tangent;

/// The shapes of operands that are not both matrices.
type Shapes = Option<Box<[Shape; 2]>>;

pub(super) fn shapes<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Shapes {
    let matrices = a.ndim() == 2 && b.ndim() == 2;
    (!matrices).then(|| Box::new([a.shape_owned(), b.shape_owned()]))
}

type State<T> = (Option<SavedInput<T>>, Option<SavedInput<T>>, SavedAttr<Shapes>);

impl<T: Float> PushRule<T, State<T>> for Tangent {
    fn push(
        (a, b, _): Kept<T>,
        tangents: &[Option<Tensor<T>>],
        _: &[usize],
    ) -> Result<Option<Tensor<T>>> {
        let left = tangents[0].as_ref().zip(b.as_ref()).map(|(da, b)| da.try_matmul(b));
        let right = tangents[1].as_ref().zip(a.as_ref()).map(|(db, a)| a.try_matmul(db));
        Ok(joined(left.transpose()?, right.transpose()?))
    }
}

pub(super) type Kept<T> = (Option<Tensor<T>>, Option<Tensor<T>>, Shapes);

/// `y = a b`: `da = dy bᵀ`, `db = aᵀ dy`.
pub(super) fn pull<T: Float>(
    (a, b, shapes): Kept<T>,
    dy: Tensor<T>,
    wants: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let [wants_a, wants_b] = wants;
    let (a, b) = (a.filter(|_| wants_b), b.filter(|_| wants_a));
    let Some(shapes) = shapes else {
        let da = |b: Tensor<T>| match unseen([&dy, &b], [false, true]) {
            Some(da) => Ok(da),
            None => dy.try_matmul(&b.transpose()),
        };
        let db = |a: Tensor<T>| match unseen([&a, &dy], [true, false]) {
            Some(db) => Ok(db),
            None => a.transpose().try_matmul(&dy),
        };
        return Ok([b.map(da).transpose()?, a.map(db).transpose()?]);
    };
    let [shape_a, shape_b] = *shapes;
    if shape_a.len() == 1 && shape_b.len() == 1 {
        return Ok([b, a].map(|x| x.map(|x| x * &dy)));
    }
    let mut dy = dy;
    // Vectors as the matrices they stood for.
    if shape_b.len() == 1 {
        dy = dy.unsqueeze(-1);
    }
    if shape_a.len() == 1 {
        dy = dy.unsqueeze(-2);
    }
    let da = |b: Tensor<T>| -> Result<Tensor<T>> {
        let b = if shape_b.len() == 1 { b.unsqueeze(-1) } else { b };
        let da = dy.try_matmul(&b.transpose())?;
        Ok(if shape_a.len() == 1 {
            let axes: Vec<isize> = (0..da.ndim() as isize - 1).collect();
            if axes.len() > 1 { da.sum_axes(&axes) } else { da.squeeze(-2) }
        } else {
            da.sum_to(&shape_a)
        })
    };
    let db = |a: Tensor<T>| -> Result<Tensor<T>> {
        let a = if shape_a.len() == 1 { a.unsqueeze(-2) } else { a };
        let db = a.transpose().try_matmul(&dy)?;
        Ok(if shape_b.len() == 1 {
            let db = db.squeeze(-1);
            let axes: Vec<isize> = (0..db.ndim() as isize - 1).collect();
            if axes.is_empty() { db } else { db.sum_axes(&axes) }
        } else {
            db.sum_to(&shape_b)
        })
    };
    Ok([b.map(da).transpose()?, a.map(db).transpose()?])
}

/// The product of two matrices, either of them transposed where `transposed` says so, where nobody sees how it
/// is made: there are no views of them. Otherwise, and where they are no matrices, `None`.
pub(super) fn unseen<T: Float>(
    [a, b]: [&Tensor<T>; 2],
    transposed: [bool; 2],
) -> Option<Tensor<T>> {
    if is_grad_enabled() || trace::is_noting() {
        return None;
    }
    let into = Value::scalar(T::ZERO);
    let value = matmul::product_into([&a.read(), &b.read()], transposed, into)?;
    Some(unrecorded("matmul", Location::caller(), [a, b], value))
}

impl<T: Numeric> Tensor<T> {
    /// The matrix product: `[m, k] x [k, n] -> [m, n]`. A vector on the left is a row, one on the
    /// right a column, and the axis that was added is taken away again. Leading axes are a stack
    /// of matrices and broadcast.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let a = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
    /// let v = Tensor::from(vec![1.0, 10.0]);
    /// assert_eq!(a.matmul(&v).to_vec(), [21.0, 43.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the inner lengths differ, the leading axes cannot be broadcast, or an integer type cannot
    /// hold a result; see [`Tensor::try_matmul`].
    #[doc(alias = "dot")]
    #[track_caller]
    pub fn matmul(&self, other: &Tensor<T>) -> Tensor<T> {
        expect(self.try_matmul(other))
    }

    /// [`Tensor::matmul`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the inner lengths differ or an operand is a scalar,
    /// [`Error::Broadcast`] if the leading axes cannot be broadcast, [`Error::Overflow`] if an integer
    /// type cannot hold a result.
    #[track_caller]
    pub fn try_matmul(&self, other: &Tensor<T>) -> Result<Tensor<T>> {
        T::matmul(self, other, Location::caller())
    }
}
