//! Ops for other crates: generic over `f32` and `f64`, with shapes, tests and an error of their own.

use std::fmt;

use autograd_core::prelude::*;

/// A learned scale of a bounded activation, `scale * tanh(x)`, one scale for each column.
///
/// ```
/// use autograd_core::Tensor;
/// use example_ops::ScaledTanh;
///
/// let x = Tensor::from([[0.0_f32, 1.0], [2.0, -1.0]]);
/// let y = ScaledTanh::apply(&x, &Tensor::from([1.0_f32, 2.0]));
/// assert_eq!(y.shape(), [2, 2]);
/// ```
#[py_layer(shapes(x: [b.., n], scale: [n] -> [b.., n]), check())]
#[derive(Debug)]
impl<T: Float> ScaledTanh<T> {
    type Saved = (Tensor<T>, Tensor<T>);

    /// Computes `scale * tanh(x)`.
    pub fn forward(
        ctx: &mut ForwardContext<Self>,
        /// The argument.
        x: &Tensor<T>,
        /// One factor for each column.
        scale: &Tensor<T>,
    ) -> Tensor<T> {
        // Inputs, not `tanh`: a value from inside could not be differentiated a second time.
        ctx.save_for_backward((x, scale));
        x.tanh() * scale
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let (x, scale) = ctx.saved_tensor();
        let tanh = x.tanh();
        // The scale was broadcast over the rows, so its gradient is a sum over them.
        Grads { x: dy * scale * (1.0 - tanh.square()), scale: (dy * tanh).sum_to(scale.shape()) }
    }
}

/// Mish: `x tanh(softplus(x))` (D. Misra, 2019).
///
/// Error of the gradient in `f32`, at all numbers: at most 6.1e-6, near -104.
#[py_layer(elementwise, check(x = [4, 3] in -3.0..3.0), check(exhaustive))]
impl Mish {
    pub fn forward(x: Real) -> Real {
        x * x.softplus().tanh()
    }
}

/// A matrix has no trace: it is not square.
#[derive(Debug, PartialEq)]
pub struct NotSquare(
    /// The shape that was given.
    pub Vec<usize>,
);

impl fmt::Display for NotSquare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a square matrix is needed, found the shape {:?}", self.0)
    }
}

impl std::error::Error for NotSquare {}

/// The trace of a matrix.
#[py_layer(check(x = [3, 3]))]
impl<T: Float> Trace<T> {
    type Attrs = usize;

    /// Adds the diagonal.
    ///
    /// # Errors
    ///
    /// [`NotSquare`] for every other shape than `[n, n]`.
    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Result<Tensor<T>, NotSquare> {
        match x.shape() {
            &[rows, columns] if rows == columns => ctx.set_attrs(rows),
            shape => return Err(NotSquare(shape.to_vec())),
        }
        Ok(x.diagonal(0).sum())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        Tensor::eye(*ctx.attrs()) * dy
    }
}
