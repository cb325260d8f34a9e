//! Matrix products.

use std::panic::Location;

use super::call::finish;
use super::shape::reshape;
use super::table::form::{Dims, Form};
use super::table::forms::{arithmetic, broadcast, exactly, same_dtype};
use super::table::values::number;
use super::table::{OpDef, entries};
use super::{Binary, Caller, Float, Numeric, joined, pairs, trace};
use crate::array::{Shape, Value, matmul};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{SavedAttr, SavedInput, Tensor, is_grad_enabled, unrecorded, with_push};

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

/// The product by `matrices`, which takes no vectors: one on the left is a row, one on the right a column, and the
/// result has no axis for it.
fn product<T: Numeric>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    caller: Caller,
    matrices: fn(&Tensor<T>, &Tensor<T>, Caller) -> Result<Tensor<T>>,
) -> Result<Tensor<T>> {
    for (t, parameter) in [(a, RECEIVER), (b, "other")] {
        if t.ndim() == 0 {
            let expected = "a vector, a matrix or a stack of matrices";
            return Err(Error::shape("matmul", parameter, expected, &[]));
        }
    }
    let [row, column] = [a, b].map(|t| t.ndim() == 1);
    let shaped = |x: &Tensor<T>, shape: &[usize]| reshape(x, Shape::from_slice(shape), caller);
    let left = if row { &shaped(a, &[1, a.len()]) } else { a };
    let right = if column { &shaped(b, &[b.len(), 1]) } else { b };
    let product = matrices(left, right, caller).map_err(|error| match error {
        Error::Shape { op, parameter, .. } => {
            let (columns, of) = (a.shape()[a.ndim() - 1], a.shape());
            let expected = format!(
                "of {columns} rows, as many as the left operand of shape {of:?} has columns"
            );
            Error::shape(op, parameter, expected, b.shape())
        }
        error => error,
    })?;
    if !row && !column {
        return Ok(product);
    }
    let [lead @ .., m, n] = product.shape() else { unreachable!("it is of matrices") };
    let kept = [(row, m), (column, n)].into_iter().filter(|(gone, _)| !gone);
    let shape: Shape = lead.iter().chain(kept.map(|(_, n)| n)).copied().collect();
    Ok(reshape(&product, shape, caller))
}

pub(super) fn integer<T: Numeric>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    product(a, b, caller, |a, b, caller| {
        let value = matmul::matmul(&a.read(), &b.read())?;
        Ok(unrecorded("matmul", caller, [a, b], value))
    })
}

pub(super) fn float<T: Float>(a: &Tensor<T>, b: &Tensor<T>, caller: Caller) -> Result<Tensor<T>> {
    product(a, b, caller, |a, b, caller| {
        let value = matmul::matmul(&a.read(), &b.read())?;
        let kept = (
            b.is_recorded().then(|| SavedInput::at(0, a)),
            a.is_recorded().then(|| SavedInput::at(1, b)),
            SavedAttr(shapes(a, b)),
        );
        // `y = a b`: `dy = da b + a db`.
        let state = with_push(kept, |(a, b, _), tangents: &[Option<Tensor<T>>], _| {
            let left = tangents[0].as_ref().zip(b.as_ref()).map(|(da, b)| da.try_matmul(b));
            let right = tangents[1].as_ref().zip(a.as_ref()).map(|(db, a)| a.try_matmul(db));
            Ok(joined(left.transpose()?, right.transpose()?))
        });
        Ok(finish("matmul", caller, [a, b], value, state, pull))
    })
}

/// The shapes of operands that are not both matrices.
type Shapes = Option<Box<[Shape; 2]>>;

fn shapes<T: Float>(a: &Tensor<T>, b: &Tensor<T>) -> Shapes {
    let matrices = a.ndim() == 2 && b.ndim() == 2;
    (!matrices).then(|| Box::new([a.shape_owned(), b.shape_owned()]))
}

/// `y = a b`: `da = dy bᵀ`, `db = aᵀ dy`.
fn pull<T: Float>(
    (a, b, shapes): (Option<Tensor<T>>, Option<Tensor<T>>, Shapes),
    dy: Tensor<T>,
    [wants_a, wants_b]: [bool; 2],
) -> Result<[Option<Tensor<T>>; 2]> {
    let (a, b) = (a.filter(|_| wants_b), b.filter(|_| wants_a));
    let da = |b: Tensor<T>| match unseen([&dy, &b], [false, true]) {
        Some(da) => Ok(da),
        None => dy.try_matmul(&b.transpose()),
    };
    let db = |a: Tensor<T>| match unseen([&a, &dy], [true, false]) {
        Some(db) => Ok(db),
        None => a.transpose().try_matmul(&dy),
    };
    let grads = [b.map(da).transpose()?, a.map(db).transpose()?];
    let Some(shapes) = shapes else { return Ok(grads) };
    let [da, db] = grads;
    Ok([da.map(|da| da.sum_to(&shapes[0])), db.map(|db| db.sum_to(&shapes[1]))])
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
    pairs! {
        /// The matrix product: `[m, k] x [k, n] -> [m, n]`. A vector on the left is a row, one on the
        /// right a column, and the axis that was added is removed again. Leading axes are a stack
        /// of matrices and broadcast.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let a = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
        /// let v = Tensor::from(vec![1.0, 10.0]);
        /// assert_eq!(a.matmul(&v).to_vec(), [21.0, 43.0]);
        /// ```
        #[doc(alias = "dot")]
        pub fn matmul, try_matmul(&self, other: &Tensor<T>) -> Tensor<T>,
            Shape | Broadcast | Overflow if "the inner lengths differ, an operand is a scalar, the leading axes \
                cannot be broadcast, or an integer type cannot hold a result" {
            T::matmul(self, other, Location::caller())
        }
    }
}
