//! What the ops give each element type. The graph knows no op: it declares what elements are asked for, and
//! the ops implement it.

use std::panic::Location;

use ndarray::{ArrayD, CowArray, IxDyn};

use super::any::{AnyTensor, Element};
use super::tensor::Tensor;
use crate::array::{DType, Shape};
use crate::error::Result;

type Caller = &'static Location<'static>;

/// A number beside a tensor of `T`: a `T`, and beside floats also an `f64`, whatever their type is, or a
/// whole number, as in `x.maximum(2)`.
///
/// All methods that take a tensor and a number take numbers so, and operators too; see [`Operand`](crate::Operand).
/// Options of an op, such as probabilities and `eps`, are `f64`.
///
/// ```
/// use autograd_core::{Float, Tensor};
///
/// fn soft_threshold<T: Float>(x: &Tensor<T>, width: f64) -> Tensor<T> {
///     let outside = x.abs().gt_scalar(width).cast::<T>();
///     outside * (x - x.clamp(-width, width))
/// }
///
/// assert_eq!(soft_threshold(&Tensor::<f32>::from([-3.0, 0.5]), 1.0).to_vec(), [-2.0, 0.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand beside a tensor of `{T}`",
    label = "write a `{T}`, or an `f64` beside floats",
    note = "`cast` changes the element type of a tensor"
)]
pub trait Scalar<T>: Sized {
    #[doc(hidden)]
    fn scalar(self) -> T;
}

/// A comparison of two numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

/// Comparisons.
pub(crate) trait Comparisons: Sized {
    fn compare(
        op: Comparison,
        x: &Tensor<Self>,
        other: &Tensor<Self>,
        at: Caller,
    ) -> Result<Tensor<bool>>
    where
        Self: Element;
    fn compare_scalar(op: Comparison, x: &Tensor<Self>, scalar: Self, at: Caller) -> Tensor<bool>
    where
        Self: Element;
}

/// Ops on elements of any type.
pub(crate) trait OfElements: Sized {
    fn of_vec(shape: Shape, data: Vec<Self>) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn of_slice(shape: Shape, data: &[Self]) -> Tensor<Self>
    where
        Self: Element;
    fn item(x: &Tensor<Self>) -> Result<Self>
    where
        Self: Element;
    fn to_vec(x: &Tensor<Self>) -> Vec<Self>
    where
        Self: Element;
    fn to_ndarray(x: &Tensor<Self>) -> ArrayD<Self>
    where
        Self: Element;
    fn view(x: &Tensor<Self>) -> CowArray<'_, Self, IxDyn>
    where
        Self: Element;
    #[cfg(feature = "nn")]
    fn own(x: &Tensor<Self>) -> Tensor<Self>
    where
        Self: Element;
    fn detach(x: &Tensor<Self>, at: Caller) -> Tensor<Self>
    where
        Self: Element;
    fn copy(x: &Tensor<Self>, at: Caller) -> Tensor<Self>
    where
        Self: Element;
    fn contiguous(x: &Tensor<Self>, at: Caller) -> Tensor<Self>
    where
        Self: Element;
    fn reshape(x: &Tensor<Self>, shape: Shape, at: Caller) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn permute(x: &Tensor<Self>, order: &[isize], at: Caller) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn slice(
        x: &Tensor<Self>,
        axis: isize,
        range: (usize, usize, usize),
        at: Caller,
    ) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn split(x: &Tensor<Self>, parts: usize, axis: isize, at: Caller) -> Result<Vec<Tensor<Self>>>
    where
        Self: Element;
    fn flip(x: &Tensor<Self>, axis: isize, at: Caller) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn concat(tensors: &[&Tensor<Self>], axis: isize, at: Caller) -> Result<Tensor<Self>>
    where
        Self: Element;
    fn cast_to(x: &Tensor<Self>, dtype: DType, at: Caller) -> AnyTensor
    where
        Self: Element;
    fn copy_from(x: &Tensor<Self>, source: &Tensor<Self>, at: Caller) -> Result<()>
    where
        Self: Element;
    fn fill(x: &Tensor<Self>, element: Self) -> Result<()>
    where
        Self: Element;
    fn replace(x: &mut Tensor<Self>, name: &'static str, result: Tensor<Self>) -> Result<()>
    where
        Self: Element;
}
