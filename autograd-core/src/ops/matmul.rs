//! Matrix products, and outer products of vectors.

use std::panic::Location;

use super::table::{
    Dims, Form, OpDef, arithmetic, broadcast, entries, exactly, for_programs, number, same_dtype,
};
use super::{Binary, Caller, Float, Numeric, add_parts, pairs};
use crate::array::integer::{self, Integer};
use crate::array::matmul::{MatrixProduct, matmul, matrix_product};
use crate::array::shape::copied;
use crate::array::{Shape, Value};
use crate::error::{Error, Plural, RECEIVER, Result};
use crate::graph::{
    Rule, Saved, SavedReader, Tensor, finish, is_grad_enabled, is_noting, unrecorded,
};

entries! {
    PRODUCTS:

    MATMUL = OpDef {
        infer: for_programs(|_, inputs| {
            let [a, b] = exactly(inputs)?;
            same_dtype(a, b)?;
            arithmetic(Binary::Mul, a)?;
            Ok(vec![Form::new(a.dtype, product_dims(&a.dims, &b.dims)?)])
        }),
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

/// Returns the product of the operands as matrices: a vector on the left is a row, on the right a column.
fn product<T: Numeric>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    of_matrices: MatrixProduct<T>,
) -> Result<Value<T>> {
    for (t, parameter) in [(a, RECEIVER), (b, "other")] {
        if t.ndim() == 0 {
            let expected = "a vector, a matrix or a stack of matrices";
            return Err(Error::shape("matmul", parameter, expected, &[]));
        }
    }
    let (columns, rows) = (a.shape()[a.ndim() - 1], b.shape()[b.ndim().saturating_sub(2)]);
    if columns != rows {
        let fitting = match b.ndim() {
            1 => format!("a vector of length {columns}"),
            _ => format!("a matrix with {}", Plural(columns, "row", "rows")),
        };
        let expected = format!("{fitting}, to fit the left operand of shape {:?}", a.shape());
        return Err(Error::shape("matmul", "other", expected, b.shape()));
    }
    let (x, y) = (a.read(), b.read());
    let shaped = |x: &Value<T>, shape: [usize; 2]| x.clone().reshaped(Shape::from_slice(&shape));
    let row = (x.rank() == 1).then(|| shaped(&x, [1, x.len()]));
    let column = (y.rank() == 1).then(|| shaped(&y, [y.len(), 1]));
    let (x, y) = (row.as_ref().unwrap_or(&x), column.as_ref().unwrap_or(&y));
    let product = matmul(x, y, of_matrices)?;
    if row.is_none() && column.is_none() {
        return Ok(product);
    }
    let mut shape = copied(product.shape());
    // Removes the added axes, the last one first.
    let rank = shape.len();
    for (vector, axis) in [(&column, rank - 1), (&row, rank - 2)] {
        if vector.is_some() {
            shape.remove(axis);
        }
    }
    Ok(product.reshaped(shape))
}

pub(super) fn integer<T: Numeric + Integer>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    caller: Caller,
) -> Result<Tensor<T>> {
    Ok(unrecorded("matmul", caller, &[a, b], product(a, b, integer::product)?))
}

pub(super) fn float<T: Float>(a: &Tensor<T>, b: &Tensor<T>, caller: Caller) -> Result<Tensor<T>> {
    let value = product(a, b, |size, a, b, c, _| T::float_product(size, a, b, c, size[2]))?;
    Ok(finish(MATMUL.name, caller, &[a, b], value, || {
        // Shapes are saved unless both operands are matrices.
        let matrices = a.ndim() == 2 && b.ndim() == 2;
        let shapes = (!matrices).then(|| [a.shape_owned(), b.shape_owned()]);
        let saved = [(0, a, b), (1, b, a)].map(|(position, operand, other)| {
            if other.would_record() { Saved::input(position, operand) } else { Saved::Absent }
        });
        let back = move |saved: &mut SavedReader<'_>, dy: Tensor<T>, wants: &[bool]| {
            let (a, b) = (saved.optional()?, saved.optional()?);
            pull(a.filter(|_| wants[1]), b.filter(|_| wants[0]), shapes.as_ref(), dy)
        };
        // `y = a b`: `dy = da b + a db`.
        Rule::new(saved, back).with_push(|saved, tangents: &[Option<Tensor<T>>], _| {
            let (a, b) = (saved.optional()?, saved.optional()?);
            let left = tangents[0].as_ref().zip(b.as_ref()).map(|(da, b)| da.try_matmul(b));
            let right = tangents[1].as_ref().zip(a.as_ref()).map(|(db, a)| a.try_matmul(db));
            Ok(add_parts(left.transpose()?, right.transpose()?))
        })
    }))
}

/// `y = a b`: `da = dy bᵀ`, `db = aᵀ dy`.
fn pull<T: Float>(
    mut a: Option<Tensor<T>>,
    mut b: Option<Tensor<T>>,
    shapes: Option<&[Shape; 2]>,
    mut dy: Tensor<T>,
) -> Result<[Option<Tensor<T>>; 2]> {
    if let Some([of_a, of_b]) = shapes {
        // Gives vectors the shape that they had as matrices in the product.
        if of_b.len() == 1 {
            (b, dy) = (b.map(|b| b.unsqueeze(-1)), dy.unsqueeze(-1));
        }
        if of_a.len() == 1 {
            (a, dy) = (a.map(|a| a.unsqueeze(-2)), dy.unsqueeze(-2));
        }
    }
    let da = |b: Tensor<T>| match unrecorded_product([&dy, &b], [false, true]) {
        Some(da) => Ok(da),
        None => dy.try_matmul(&b.transpose()),
    };
    let db = |a: Tensor<T>| match unrecorded_product([&a, &dy], [true, false]) {
        Some(db) => Ok(db),
        None => a.transpose().try_matmul(&dy),
    };
    let grads = [b.map(da).transpose()?, a.map(db).transpose()?];
    let Some([of_a, of_b]) = shapes else { return Ok(grads) };
    let like = |dx: Tensor<T>, shape: &[usize], matrix: [usize; 2]| match shape.len() {
        1 => dx.unbroadcast(&matrix).reshape(shape),
        _ => dx.unbroadcast(shape),
    };
    let [da, db] = grads;
    Ok([da.map(|da| like(da, of_a, [1, of_a[0]])), db.map(|db| like(db, of_b, [of_b[0], 1]))])
}

/// Returns the product of two matrices; `None` if ops are recorded or traced, or an operand is no matrix.
pub(super) fn unrecorded_product<T: Float>(
    [a, b]: [&Tensor<T>; 2],
    transposed: [bool; 2],
) -> Option<Tensor<T>> {
    if is_grad_enabled() || is_noting() {
        return None;
    }
    let value = matrix_product([&a.read(), &b.read()], transposed)?;
    Some(unrecorded("matmul", Location::caller(), &[a, b], value))
}

/// # Products of matrices
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns the matrix product: `[m, k] x [k, n] -> [m, n]`. A vector on the left is a row, one on the
        /// right a column, without the added axis in the result. Leading axes broadcast.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let a = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
        /// let v = Tensor::from(vec![1.0, 10.0]);
        /// assert_eq!(a.matmul(&v).to_vec(), [21.0, 43.0]);
        /// ```
        #[doc(alias = "dot")]
        #[doc(alias = "mm")]
        #[doc(alias = "mv")]
        #[doc(alias = "bmm")]
        pub fn matmul, try_matmul(&self, other: &Tensor<T>) -> Tensor<T>,
            Shape | Broadcast | Overflow if "the inner lengths differ, an operand is a scalar, the leading axes \
                cannot be broadcast, or an integer type cannot hold a result",
            "Tensor::<f64>::ones([2, 3]).try_matmul(&Tensor::ones([2, 3]))" => Shape {
            T::matmul(self, other, Location::caller())
        }
    }
}

/// # Products of vectors
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the products of each element of a vector `[m]` with each of another `[n]`, as `[m, n]`:
        /// `y[i, j] = x[i] * other[j]`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let y = Tensor::from([1.0, 2.0]).outer(&Tensor::from([3.0, 4.0]));
        /// assert_eq!(y.to_vec(), [3.0, 4.0, 6.0, 8.0]);
        /// ```
        pub fn outer, try_outer(&self, other: &Tensor<T>) -> Tensor<T>, Shape if
            "either is not a vector",
            "Tensor::<f64>::ones([2, 2]).try_outer(&Tensor::ones([2]))" => Shape {
            for (x, parameter) in [(self, RECEIVER), (other, "other")] {
                if x.ndim() != 1 {
                    return Err(Error::shape("outer", parameter, "a vector", x.shape()));
                }
            }
            self.unsqueeze(1).try_mul(other.unsqueeze(0))
        }
    }
}
