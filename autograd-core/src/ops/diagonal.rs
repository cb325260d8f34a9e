//! Diagonals of matrices, and matrices with a given diagonal: each is the other's adjoint.

use std::panic::Location;

use super::call::{call, linear};
use super::table::{Attr, Form, OpDef, Type, arithmetic, entries, exactly, for_programs, number};
use super::{Binary, Caller, Numeric, Reduce, pairs};
use crate::array::shape::{copied, element_count};
use crate::array::{Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::Tensor;

entries! {
    DIAGONALS:

    DIAGONAL = OpDef {
        attrs: &[("offset", Type::Int)],
        infer: for_programs(|op, inputs| {
            let x = arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            let [stack @ .., rows, columns] = &x.dims[..] else {
                return Err(format!("takes matrices, found {x}"));
            };
            let length = rows.zip(*columns).map(|of| Place::new(of, op.int(0)).length);
            Ok(vec![Form::new(x.dtype, stack.iter().copied().chain([length]).collect())])
        }),
        run: |op, x, at| number!(x, x => diagonal(&x, op.int(0), at)),
        ..OpDef::new("diagonal")
    };

    /// A matrix that is 0 but on a diagonal. Without rows and columns (-1) it is square.
    DIAG = OpDef {
        attrs: &[("offset", Type::Int), ("rows", Type::Int), ("columns", Type::Int)],
        infer: for_programs(|op, inputs| {
            let x = arithmetic(Binary::Add, exactly::<1>(inputs)?[0])?;
            let [stack @ .., length] = &x.dims[..] else {
                return Err("takes one axis or more, found a scalar".to_owned());
            };
            let side = |given: isize| match usize::try_from(given) {
                Ok(given) => Some(given),
                Err(_) => length.map(|n| n.saturating_add(op.int(0).unsigned_abs())),
            };
            let sides = [side(op.int(1)), side(op.int(2))];
            Ok(vec![Form::new(x.dtype, stack.iter().copied().chain(sides).collect())])
        }),
        run: |op, x, at| {
            let sides = [op.int(1), op.int(2)];
            number!(x, x => diag(&x, op.int(0), sides, at))
        },
        ..OpDef::new("diag")
    };
}

/// Where a diagonal of a matrix lies in row-major order.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    step: usize,
    length: usize,
}

impl Place {
    fn new((rows, columns): (usize, usize), offset: isize) -> Self {
        let by = offset.unsigned_abs();
        let (down, right) = if offset < 0 { (by, 0) } else { (0, by) };
        let length = rows.saturating_sub(down).min(columns.saturating_sub(right));
        // Beyond the matrix there is none.
        let start = if length == 0 { 0 } else { down * columns + right };
        Self { start, step: columns + 1, length }
    }

    fn each(self) -> impl Iterator<Item = usize> {
        (0..self.length).map(move |i| self.start + i * self.step)
    }
}

fn diagonal<T: Numeric>(x: &Tensor<T>, offset: isize, caller: Caller) -> Result<Tensor<T>> {
    let &[ref stack @ .., rows, columns] = x.shape() else {
        let expected = "matrices (two axes or more)";
        return Err(Error::shape(DIAGONAL.name, RECEIVER, expected, x.shape()));
    };
    let place = Place::new((rows, columns), offset);
    let shape: Shape = stack.iter().copied().chain([place.length]).collect();
    let read = x.read().into_owned().into_contiguous();
    let value = Value::written(shape, &mut |out| {
        let matrices = read.as_slice().unwrap_or(&[]).chunks_exact((rows * columns).max(1));
        for (out, x) in out.chunks_exact_mut(place.length.max(1)).zip(matrices) {
            out.iter_mut().zip(place.each()).for_each(|(out, at)| *out = x[at]);
        }
    });
    let back = move |_: (), dy: Tensor<T>| dy.with_diagonal(offset, [rows, columns]);
    let along = move |_: (), dx: &Tensor<T>, _: &[usize]| dx.try_diagonal(offset);
    Ok(linear(DIAGONAL.name, caller, x, value, (), back, along))
}

fn diag<T: Numeric>(
    x: &Tensor<T>,
    offset: isize,
    sides: [isize; 2],
    caller: Caller,
) -> Result<Tensor<T>> {
    let &[ref stack @ .., length] = x.shape() else {
        return Err(Error::shape(DIAG.name, RECEIVER, "of one axis or more", x.shape()));
    };
    let square = length.saturating_add(offset.unsigned_abs());
    let [rows, columns] = sides.map(|side| usize::try_from(side).unwrap_or(square));
    let mut shape = copied(stack);
    shape.extend([rows, columns]);
    element_count(DIAG.name, &shape)?;
    let place = Place::new((rows, columns), offset);
    let read = x.read().into_owned().into_contiguous();
    let value = Value::written(shape, &mut |out| {
        out.fill(T::ZERO);
        let diagonals = read.as_slice().unwrap_or(&[]).chunks_exact(length.max(1));
        for (out, x) in out.chunks_exact_mut((rows * columns).max(1)).zip(diagonals) {
            place.each().zip(x).for_each(|(at, x)| out[at] = *x);
        }
    });
    let back = move |_: (), dy: Tensor<T>| dy.try_diagonal(offset);
    let along = move |_: (), dx: &Tensor<T>, _: &[usize]| dx.with_diagonal(offset, [rows, columns]);
    Ok(linear(DIAG.name, caller, x, value, (), back, along))
}

/// # Diagonals
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Returns a diagonal of the matrices on the last two axes: the main one for `offset` 0, one above it
        /// for a positive offset, one below it for a negative one.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(x.diagonal(0).to_vec(), [1, 5]);
        /// assert_eq!(x.diagonal(1).to_vec(), [2, 6]);
        /// assert_eq!(x.diagonal(-1).to_vec(), [4]);
        /// ```
        pub fn diagonal, try_diagonal(&self, offset: isize) -> Tensor<T>,
            Shape if "there are fewer than two axes",
            "Tensor::from([1.0, 2.0]).try_diagonal(0)" => Shape {
            call(&DIAGONAL, [Attr::Int(offset)], [self.untyped()])
        }

        /// Returns square matrices with the last axis on a diagonal, as [`Tensor::diagonal`] counts them, and
        /// 0 elsewhere.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([1, 2]).diag(0).to_vec(), [1, 0, 0, 2]);
        /// assert_eq!(Tensor::from([7]).diag(1).to_vec(), [0, 7, 0, 0]);
        /// ```
        #[doc(alias = "diag_embed")]
        pub fn diag, try_diag(&self, offset: isize) -> Tensor<T>,
            Shape | TooLarge if "this is a scalar, or the result has more elements than this machine can address",
            "Tensor::from(1.0).try_diag(0)" => Shape {
            let attrs = [Attr::Int(offset), Attr::Int(-1), Attr::Int(-1)];
            call(&DIAG, attrs, [self.untyped()])
        }

        /// Returns the sum of the main diagonal, `x[i, i]`, of the matrices on the last two axes, which are removed.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([[1.0, 2.0], [3.0, 4.0]]).trace().item(), 5.0);
        /// ```
        pub fn trace, try_trace(&self) -> Tensor<T>,
            Shape | Overflow if "there are fewer than two axes, or an integer sum is outside of the element type",
            "Tensor::from([1.0, 2.0]).try_trace()" => Shape {
            let (at, named) = (Location::caller(), |error: Error| error.called("trace"));
            let diagonal = self.try_diagonal(0).map_err(named)?;
            T::reduce(Reduce::Sum, &diagonal, &[-1], false, at).map_err(named)
        }
    }

    #[track_caller]
    fn with_diagonal(&self, offset: isize, [rows, columns]: [usize; 2]) -> Result<Tensor<T>> {
        let attrs = [Attr::Int(offset), Attr::Int(rows as isize), Attr::Int(columns as isize)];
        call(&DIAG, attrs, [self.untyped()])
    }
}
