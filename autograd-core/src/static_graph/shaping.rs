//! Methods of variables for matrices, shapes, selection, images and losses.

use super::arithmetic::{IntoOperand, Operand};
use super::ir::Site;
use super::program::{Variable, read_dims};
use super::table;
use crate::array::{DType, IntoAxes, IntoDims};
use crate::error::Result;
use crate::ops::table::attr::Attr;
use crate::ops::{Conv2dOptions, PoolOptions, is_order};

/// Methods that add one operator: documentation and signature, entry of the table, inputs, attributes.
macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)*) -> Result<Variable> =
            $entry:ident [$($input:expr),*] $(, $attr:expr)*;
    )*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&$self $(, $arg: $type)*) -> Result<Variable> {
            $self.program.one(&table::$entry, [$($attr),*], &[$($input),*])
        }
    )*};
}

/// # Matrices, shapes, images, losses
///
/// Each returns [`Error::Program`](crate::Error::Program) if shapes, axes or element types do not fit.
impl Variable {
    methods! {
        /// The matrix product; see [`Tensor::matmul`](crate::Tensor::matmul).
        pub fn matmul(&self, right: &Variable) -> Result<Variable> = MATMUL [self, right];

        /// `exp(x)` divided by its sum along an axis.
        pub fn softmax(&self, axis: isize) -> Result<Variable> = SOFTMAX [self], Attr::Int(axis);

        /// The logarithm of [`Variable::softmax`].
        pub fn log_softmax(&self, axis: isize) -> Result<Variable> = LOG_SOFTMAX [self], Attr::Int(axis);

        /// [`Program::cross_entropy`](super::Program::cross_entropy) of these logits.
        pub fn cross_entropy(&self, classes: &Variable) -> Result<Variable> = CROSS_ENTROPY [self, classes];

        /// The axes in another order.
        pub fn permute(&self, order: &[isize]) -> Result<Variable> =
            PERMUTE [self], Attr::Ints(order.to_vec());

        /// The elements converted to another type.
        pub fn cast(&self, dtype: DType) -> Result<Variable> = CAST [self], Attr::Type(dtype);

        /// The slices along an axis that `index`, a vector of int64, selects.
        pub fn index_select(&self, axis: isize, index: &Variable) -> Result<Variable> =
            INDEX_SELECT [self, index], Attr::Int(axis);

        /// The elements along an axis that `index` selects, an int64 variable with as many axes; see
        /// [`Tensor::gather`](crate::Tensor::gather).
        pub fn gather(&self, axis: isize, index: &Variable) -> Result<Variable> =
            GATHER [self, index], Attr::Int(axis);

        /// The position of the greatest element along an axis, as int64; the axis is removed. It has no
        /// gradient.
        pub fn argmax(&self, axis: isize) -> Result<Variable> = ARGMAX [self], Attr::Int(axis);

        /// The positions of the elements along an axis in ascending or descending order, as int64, for
        /// [`Variable::gather`]; see [`Tensor::argsort`](crate::Tensor::argsort). It has no gradient.
        pub fn argsort(&self, axis: isize, descending: bool) -> Result<Variable> =
            ARGSORT [self], Attr::Int(axis), Attr::Flag(descending);

        /// The mean cross entropy of probabilities; see
        /// [`Tensor::binary_cross_entropy`](crate::Tensor::binary_cross_entropy).
        pub fn binary_cross_entropy(&self, targets: &Variable) -> Result<Variable> =
            OF_PROBABILITIES [self, targets];

        /// The greatest element of each window of images.
        pub fn max_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> =
            MAX_POOL2D [self], Attr::Pairs(options.into().parts().to_vec());

        /// The mean of each window of images.
        pub fn avg_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> =
            AVG_POOL2D [self], Attr::Pairs(options.into().parts().to_vec());
    }

    /// The norm of order `p` along axes, which are removed; see
    /// [`Tensor::norm_axes`](crate::Tensor::norm_axes).
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if an axis does not exist, or `p` is NaN.
    #[track_caller]
    pub fn norm_axes(&self, axes: impl IntoAxes, p: f64) -> Result<Variable> {
        if !is_order(p) {
            return Site::here("norm_axes").refuse(format!("`p` must be a number, found {p}"));
        }
        let attrs = [Attr::Ints(axes.as_axes().to_vec()), Attr::Number(p), Attr::Flag(false)];
        self.program.one(&table::NORM_AXES, attrs, &[self])
    }

    /// The same elements under another shape; the length of one axis may be -1, to be computed.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoDims) -> Result<Variable> {
        let dims = read_dims(shape, &Site::here("reshape"))?;
        self.program.one(&table::RESHAPE, [Attr::Dims(dims)], &[self])
    }

    /// Broadcasts to a shape, as [`Tensor::broadcast_to`](crate::Tensor::broadcast_to); -1 keeps the length
    /// of an axis.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoDims) -> Result<Variable> {
        let dims = read_dims(shape, &Site::here("broadcast_to"))?;
        self.program.one(&table::BROADCAST_TO, [Attr::Dims(dims)], &[self])
    }

    /// Sets each element to 0 with probability `p`, and divides the others by `1 - p`; a [copy for
    /// testing](super::Program::clone_program) changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `p` is not in [0, 1].
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Variable> {
        if !(0.0..=1.0).contains(&p) {
            return Site::here("dropout").refuse(format!("`p` must be a probability, found {p}"));
        }
        self.program.one(&table::DROPOUT, [Attr::Number(p), Attr::Flag(true)], &[self])
    }

    /// Swaps the last two axes.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there are fewer than two axes.
    #[track_caller]
    pub fn transpose(&self) -> Result<Variable> {
        let mut order: Vec<isize> = (0..self.ndim() as isize).collect();
        let [.., a, b] = &mut order[..] else {
            let (name, form) = (self.name(), self.form());
            return Site::here("transpose")
                .refuse(format!("`{name}` must have two axes or more, it is {form}"));
        };
        std::mem::swap(a, b);
        self.program.one(&table::PERMUTE, [Attr::Ints(order)], &[self])
    }

    /// The elements `start, start + step, ..` below `end`, or below the length of the axis.
    #[track_caller]
    pub fn slice_axis(
        &self,
        axis: isize,
        start: usize,
        end: impl Into<Option<usize>>,
        step: usize,
    ) -> Result<Variable> {
        let end = Attr::Dims([end.into()].into_iter().collect());
        let attrs = [Attr::Int(axis), Attr::Int(start as isize), end, Attr::Int(step as isize)];
        self.program.one(&table::SLICE, attrs, &[self])
    }

    /// Selects `on` where this variable, a mask of bools, is true, and `off` elsewhere. One of the two may be
    /// a number.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the variable is not a mask, or shapes or element types do
    /// not fit.
    #[track_caller]
    pub fn where_else(&self, on: impl IntoOperand, off: impl IntoOperand) -> Result<Variable> {
        const CALL: &str = "where_else";
        let (on, off) = (on.operand(), off.operand());
        let dtype = match (&on, &off) {
            (Operand::Variable(typed), _) | (_, Operand::Variable(typed)) => typed.dtype(),
            (Operand::Number(_), Operand::Number(_)) => {
                return Site::here(CALL).refuse(
                    "`on` and `off` are both numbers; make one a variable, which has a type",
                );
            }
        };
        let on = on.variable(&self.program, CALL, dtype)?;
        let off = off.variable(&self.program, CALL, dtype)?;
        self.program.one(&table::WHERE, [], &[self, &on, &off])
    }

    /// The convolution of images `[n, channels, height, width]`, of which only `n` may be free; see
    /// [`Tensor::conv2d`](crate::Tensor::conv2d).
    ///
    /// ```
    /// use autograd_core::static_graph::{Init, Program};
    /// use autograd_core::{Conv2dOptions, DType};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 1, 28, 28], DType::Float32)?;
    /// let weight = program.create_parameter("w", [6, 1, 5, 5], DType::Float32, Init::Xavier)?;
    /// let maps = x.conv2d(&weight, None, Conv2dOptions::default())?.relu()?.max_pool2d(2)?;
    /// assert_eq!(maps.shape(), [None, Some(6), Some(12), Some(12)]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if shapes or element types do not fit, or an
    /// option is out of range.
    #[track_caller]
    pub fn conv2d(
        &self,
        weight: &Variable,
        bias: Option<&Variable>,
        options: Conv2dOptions,
    ) -> Result<Variable> {
        let inputs: Vec<&Variable> =
            [Some(self), Some(weight), bias].into_iter().flatten().collect();
        let options = Attr::Pairs(options.parts().to_vec());
        self.program.one(&table::CONV2D, [options], &inputs)
    }
}
