//! Matrices, shapes, choices, pictures and losses of variables.

use std::panic::Location;

use super::arithmetic::{IntoOperand, Operand};
use super::dims::{IntoDims, read_dims};
use super::ir::{Place, wrong};
use super::kind::{Kind, Pool};
use super::variable::Variable;
use crate::array::DType;
use crate::error::Result;
use crate::ops::{Conv2dOptions, PoolOptions};

/// # Matrices, shapes, pictures, losses
///
/// Each is an [`Error::Program`](crate::Error::Program) where shapes or element types do not fit.
impl Variable {
    /// The matrix product; see [`Tensor::matmul`](crate::Tensor::matmul).
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the inner lengths differ.
    #[track_caller]
    pub fn matmul(&self, right: &Variable) -> Result<Variable> {
        self.program.one(Kind::Matmul, &[self, right], Location::caller())
    }

    /// `exp(x)` divided by its sum along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis.
    #[track_caller]
    pub fn softmax(&self, axis: isize) -> Result<Variable> {
        self.program.one(Kind::Softmax { axis }, &[self], Location::caller())
    }

    /// The logarithm of [`Variable::softmax`].
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis.
    #[track_caller]
    pub fn log_softmax(&self, axis: isize) -> Result<Variable> {
        self.program.one(Kind::LogSoftmax { axis }, &[self], Location::caller())
    }

    /// [`Program::cross_entropy`](super::Program::cross_entropy) of these logits.
    ///
    /// # Errors
    ///
    /// As [`Program::cross_entropy`](super::Program::cross_entropy).
    #[track_caller]
    pub fn cross_entropy(&self, classes: &Variable) -> Result<Variable> {
        self.program.one(Kind::CrossEntropy, &[self, classes], Location::caller())
    }

    /// The same elements under another shape, one axis of which may be -1: what is left.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the elements do not fit.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoDims) -> Result<Variable> {
        let location = Location::caller();
        let dims = read_dims(shape, "reshape", &Place::Line(location))?;
        self.program.one(Kind::Reshape(dims), &[self], location)
    }

    /// Axes in another order.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if an axis is missing or stands twice.
    #[track_caller]
    pub fn permute(&self, order: &[isize]) -> Result<Variable> {
        self.program.one(Kind::Permute(order.to_vec()), &[self], Location::caller())
    }

    /// The same numbers as elements of another type.
    ///
    /// # Errors
    ///
    /// None today.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Variable> {
        self.program.one(Kind::Cast(dtype), &[self], Location::caller())
    }

    /// Each element is 0 with probability `p`, else divided by `1 - p`; in a
    /// [copy for testing](super::Program::clone_program) nothing changes.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `p` is not in [0, 1].
    #[track_caller]
    pub fn dropout(&self, p: f64) -> Result<Variable> {
        let location = Location::caller();
        if !(0.0..=1.0).contains(&p) {
            let why = format!("`p` must be a probability, found {p}");
            return Err(wrong("dropout", &Place::Line(location), why));
        }
        self.program.one(Kind::Dropout { p, training: true }, &[self], location)
    }

    /// The last two axes exchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there are fewer than two axes.
    #[track_caller]
    pub fn transpose(&self) -> Result<Variable> {
        let rank = self.ndim();
        let mut order: Vec<isize> = (0..rank as isize).collect();
        if rank < 2 {
            let why =
                format!("`{}` must have two axes or more, it is {}", self.name(), self.form());
            return Err(wrong("transpose", &Place::Line(Location::caller()), why));
        }
        order.swap(rank - 2, rank - 1);
        self.program.one(Kind::Permute(order), &[self], Location::caller())
    }

    /// Stretched to a shape, as [`Tensor::broadcast_to`](crate::Tensor::broadcast_to); -1 keeps the
    /// length of an axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if it cannot be stretched so.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoDims) -> Result<Variable> {
        let location = Location::caller();
        let dims = read_dims(shape, "broadcast_to", &Place::Line(location))?;
        self.program.one(Kind::BroadcastTo(dims), &[self], location)
    }

    /// The elements `start, start + step, ..` below `end`, or up to the end of the axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis or no such part of it.
    #[track_caller]
    pub fn slice_axis(
        &self,
        axis: isize,
        start: usize,
        end: impl Into<Option<usize>>,
        step: usize,
    ) -> Result<Variable> {
        let kind = Kind::Slice { axis, start, end: end.into(), step };
        self.program.one(kind, &[self], Location::caller())
    }

    /// This variable, a mask of bools, chooses: `on` where it is true, else `off`. One of the two may
    /// be a number.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if it is no mask, or shapes or element types do
    /// not fit.
    #[track_caller]
    pub fn where_else(&self, on: impl IntoOperand, off: impl IntoOperand) -> Result<Variable> {
        let (op, location) = ("where_else", Location::caller());
        let (on, off) = (on.operand(), off.operand());
        let dtype = match (&on, &off) {
            (Operand::Variable(typed), _) | (_, Operand::Variable(typed)) => typed.dtype(),
            (Operand::Number(_), Operand::Number(_)) => {
                let why = "`on` and `off` are both numbers; make one a variable, which has a type";
                return Err(wrong(op, &Place::Line(location), why.to_owned()));
            }
        };
        let on = on.variable(&self.program, op, dtype, location)?;
        let off = off.variable(&self.program, op, dtype, location)?;
        self.program.one(Kind::Where, &[self, &on, &off], location)
    }

    /// The slices of an axis that `index`, a vector of int64, names.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis, or `index` is no vector
    /// of int64.
    #[track_caller]
    pub fn index_select(&self, axis: isize, index: &Variable) -> Result<Variable> {
        self.program.one(Kind::IndexSelect { axis }, &[self, index], Location::caller())
    }

    /// Along an axis the elements that `index` names; see [`Tensor::gather`](crate::Tensor::gather).
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis, or `index` is not int64
    /// of as many axes.
    #[track_caller]
    pub fn gather(&self, axis: isize, index: &Variable) -> Result<Variable> {
        self.program.one(Kind::Gather { axis }, &[self, index], Location::caller())
    }

    /// The convolution of pictures `[n, channels, height, width]`, of which only `n` may be free;
    /// see [`Tensor::conv2d`](crate::Tensor::conv2d).
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
        self.program.one(Kind::Conv2d(options), &inputs, Location::caller())
    }

    /// Where the greatest element along an axis stands, as int64; the axis is taken away. It has no
    /// gradient.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is no such axis, or the elements are no
    /// numbers.
    #[track_caller]
    pub fn argmax(&self, axis: isize) -> Result<Variable> {
        self.program.one(Kind::ArgMax { axis }, &[self], Location::caller())
    }

    /// The greatest element of each window of pictures.
    ///
    /// # Errors
    ///
    /// As [`Variable::conv2d`].
    #[track_caller]
    pub fn max_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> {
        self.program.one(Kind::Pool2d(Pool::Max, options.into()), &[self], Location::caller())
    }

    /// The mean of each window of pictures.
    ///
    /// # Errors
    ///
    /// As [`Variable::conv2d`].
    #[track_caller]
    pub fn avg_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> {
        self.program.one(Kind::Pool2d(Pool::Average, options.into()), &[self], Location::caller())
    }
}

macro_rules! comparisons {
    ($($method:ident $doc:literal;)*) => {
        /// # Comparisons
        ///
        /// With another variable, with broadcasting, or a number; they give a mask of bools and have
        /// no gradient.
        impl Variable {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                ///
                /// [`Error::Program`](crate::Error::Program) if shapes or element types do not fit.
                #[track_caller]
                pub fn $method(&self, other: impl IntoOperand) -> Result<Variable> {
                    let (op, location) = (stringify!($method), Location::caller());
                    let other = other.operand();
                    let other = other.variable(&self.program, op, self.dtype(), location)?;
                    self.program.one(Kind::Compare(op), &[self, &other], location)
                }
            )*
        }

        impl Kind {
            /// Comparisons that a program can have.
            pub(super) const COMPARISONS: &'static [&'static str] = &[$(stringify!($method)),*];
        }
    };
}

comparisons! {
    equal "Where the elements are equal.";
    not_equal "Where the elements differ.";
    greater "Where `self > other`.";
    greater_equal "Where `self >= other`.";
    less "Where `self < other`.";
    less_equal "Where `self <= other`.";
}
