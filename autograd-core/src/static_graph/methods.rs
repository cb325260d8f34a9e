//! Methods of variables, named as those of tensors: one operator each, or a trace of several.

use super::arithmetic::{IntoOperand, Operand, example};
use super::ir::Site;
use super::program::{Program, Variable, read_dims};
use super::table;
use crate::array::{DType, IntoAxes, IntoDims};
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::table::{Attr, Values, all, computed, float, not_numbers, one};
use crate::ops::{Comparison, Conv2dOptions, Float, Padding, PoolOptions, Reduce};

/// Methods that add one operator: the inputs of their examples; more documentation, signature, entry of the table,
/// inputs, attributes, and the call of the [`example`].
macro_rules! methods {
    ($list:ident of $of:tt: $(
        $(#[$doc:meta])*
        pub fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)*) -> Result<Variable> =
            $entry:ident $(of $at:path)? [$($input:expr),*] $(, $attr:expr)* => $($call:expr),+;
    )*) => {
        const $list: &[&str] = &[$(stringify!($name)),*];

        $(
        #[doc = concat!("As [`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), ").")]
        $(#[$doc])*
        ///
        #[doc = example!($of $(stringify!($call)),+)]
        ///
        /// # Errors
        ///
        /// [`Error::Program`](crate::Error::Program), as the heading above says.
        #[track_caller]
        pub fn $name(&$self $(, $arg: $type)*) -> Result<Variable> {
            $self.program.one(&table::$entry $([$at as usize])?, [$($attr),*], &[$($input),*])
        }
        )*
    };
}

/// Traced methods for float types: the inputs of their examples; more documentation, signature, inputs, owned
/// arguments, the eager ops, and the call of the [`example`].
macro_rules! traced {
    ($list:ident of $of:tt: $(
        $(#[$doc:meta])*
        pub fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)*) -> Result<Variable> =
            [$($input:expr),*] $x:tt $(, $own:ident = $kept:expr)* => $y:expr => $($call:expr),+;
    )*) => {
        const $list: &[&str] = &[$(stringify!($name)),*];

        $(
        #[doc = concat!("As [`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), ").")]
        $(#[$doc])*
        ///
        #[doc = example!($of $(stringify!($call)),+)]
        ///
        /// # Errors
        ///
        /// [`Error::Program`](crate::Error::Program), as the heading above says.
        #[track_caller]
        pub fn $name(&$self $(, $arg: $type)*) -> Result<Variable> {
            $(let $own = $kept;)*
            let run = move |values| float!(values, $x => $y);
            Ok($self.program.method(stringify!($name), &[$($input),*], run)?.remove(0))
        }
        )*
    };
}

fn along(axes: impl IntoAxes) -> Attr {
    Attr::Ints(axes.as_axes().to_vec())
}

#[track_caller]
fn dims(call: &str, shape: impl IntoDims) -> Result<Attr> {
    Ok(Attr::Dims(read_dims(shape, &Site::here(call))?))
}

#[track_caller]
fn checked(call: &str, p: f64, fits: bool, expected: &str) -> Result<Attr> {
    match fits {
        true => Ok(Attr::Number(p)),
        false => Site::here(call).refuse(format!("`p` must be {expected}, found {p}")),
    }
}

/// # Reductions
///
/// They return [`Error::Program`](crate::Error::Program) if an axis does not exist or occurs twice.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let x = program.data("x", [-1, 4], DType::Float32)?;
/// assert_eq!(x.sum_axes(0)?.shape(), [Some(4)]);
/// assert!(x.max_axes(2).is_err() && x.mean()?.shape().is_empty());
/// # Ok::<(), autograd_core::Error>(())
/// ```
impl Variable {
    methods! {
        REDUCED of (x: Float64 [2, 3] = "[[1.0, -2.0, 3.0], [0.5, 6.0, 4.0]]"):
        pub fn sum(&self) -> Result<Variable> =
            REDUCTIONS of Reduce::Sum [self], along([]), Attr::Flag(false) => x.sum();
        pub fn sum_axes(&self, axes: impl IntoAxes) -> Result<Variable> =
            REDUCTIONS of Reduce::Sum [self], along(axes), Attr::Flag(false) => x.sum_axes(0);
        pub fn mean(&self) -> Result<Variable> =
            REDUCTIONS of Reduce::Mean [self], along([]), Attr::Flag(false) => x.mean();
        pub fn mean_axes(&self, axes: impl IntoAxes) -> Result<Variable> =
            REDUCTIONS of Reduce::Mean [self], along(axes), Attr::Flag(false) => x.mean_axes(0);
        pub fn prod(&self) -> Result<Variable> =
            REDUCTIONS of Reduce::Prod [self], along([]), Attr::Flag(false) => x.prod();
        pub fn prod_axes(&self, axes: impl IntoAxes) -> Result<Variable> =
            REDUCTIONS of Reduce::Prod [self], along(axes), Attr::Flag(false) => x.prod_axes(0);
        pub fn max(&self) -> Result<Variable> =
            REDUCTIONS of Reduce::Max [self], along([]), Attr::Flag(false) => x.max();
        pub fn max_axes(&self, axes: impl IntoAxes) -> Result<Variable> =
            REDUCTIONS of Reduce::Max [self], along(axes), Attr::Flag(false) => x.max_axes(0);
        pub fn min(&self) -> Result<Variable> =
            REDUCTIONS of Reduce::Min [self], along([]), Attr::Flag(false) => x.min();
        pub fn min_axes(&self, axes: impl IntoAxes) -> Result<Variable> =
            REDUCTIONS of Reduce::Min [self], along(axes), Attr::Flag(false) => x.min_axes(0);
    }
}

/// # Comparisons
///
/// With another variable, with broadcasting, or with a number. The result is a mask of bools without a gradient.
/// They return [`Error::Program`](crate::Error::Program) if shapes or element types do not fit.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let x = program.data("x", [-1], DType::Float64)?;
/// let positive = x.greater(0.0)?;
/// assert_eq!((positive.dtype(), positive.shape()), (DType::Bool, x.shape()));
/// # Ok::<(), autograd_core::Error>(())
/// ```
impl Variable {
    methods! {
        COMPARED of (x: Float64 [3] = "[1.0, 2.0, 3.0]", t: Float64 [3] = "[2.0, 2.0, 2.0]"):
        pub fn equal(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::Equal [self, &self.beside(other, "equal")?] => x.equal(&t);
        pub fn not_equal(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::NotEqual [self, &self.beside(other, "not_equal")?] => x.not_equal(&t);
        pub fn greater(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::Greater [self, &self.beside(other, "greater")?] => x.greater(&t);
        pub fn greater_equal(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::GreaterEqual [self, &self.beside(other, "greater_equal")?]
            => x.greater_equal(&t);
        pub fn less(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::Less [self, &self.beside(other, "less")?] => x.less(&t);
        pub fn less_equal(&self, other: impl IntoOperand) -> Result<Variable> =
            COMPARISONS of Comparison::LessEqual [self, &self.beside(other, "less_equal")?] => x.less_equal(&t);
    }

    #[track_caller]
    fn beside(&self, other: impl IntoOperand, op: &str) -> Result<Variable> {
        other.operand().variable(&self.program, op, self.dtype())
    }
}

/// # Methods of tensors
///
/// Each returns [`Error::Program`](crate::Error::Program) if that method panics or returns an error, if the
/// element type does not fit, or if a length in its arguments depends on a free axis. Positions are int64.
/// Shapes, `select`, `clamp` and losses of several operators are for float types.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::Program;
///
/// let program = Program::new();
/// let x = program.data("x", [-1, 3], DType::Float64)?;
/// assert_eq!(x.softmax(1)?.unsqueeze(0)?.shape(), [Some(1), None, Some(3)]);
/// assert!(x.squeeze(1).is_err());
/// # Ok::<(), autograd_core::Error>(())
/// ```
impl Variable {
    methods! {
        COMPUTED of (x: Float64 [2, 2] = "[[0.25, -0.5], [0.75, 2.0]]"):
        pub fn matmul(&self, other: &Variable) -> Result<Variable> = MATMUL [self, other] => x.matmul(&x);
        pub fn softmax(&self, axis: isize) -> Result<Variable> = SOFTMAX [self], Attr::Int(axis) => x.softmax(1);
        pub fn log_softmax(&self, axis: isize) -> Result<Variable> = LOG_SOFTMAX [self], Attr::Int(axis)
            => x.log_softmax(1);
        pub fn permute(&self, order: &[isize]) -> Result<Variable> = PERMUTE [self], Attr::Ints(order.to_vec())
            => x.permute(&[1, 0]);
        pub fn cast(&self, dtype: DType) -> Result<Variable> = CAST [self], Attr::Type(dtype)
            => x.cast(DType::Int64), x.cast::<i64>();
        pub fn argmax(&self, axis: isize) -> Result<Variable> = ARGMAX [self], Attr::Int(axis) => x.argmax(1);
        pub fn argmin(&self, axis: isize) -> Result<Variable> = ARGMIN [self], Attr::Int(axis) => x.argmin(1);
        pub fn argsort(&self, axis: isize, descending: bool) -> Result<Variable> =
            ARGSORT [self], Attr::Int(axis), Attr::Flag(descending) => x.argsort(1, true);
        pub fn cumsum(&self, axis: isize) -> Result<Variable> = CUMSUM [self], Attr::Int(axis), Attr::Flag(false)
            => x.cumsum(1);
        pub fn cumprod(&self, axis: isize) -> Result<Variable> = CUMPROD [self], Attr::Int(axis) => x.cumprod(1);
        pub fn var_axes(&self, axes: impl IntoAxes, correction: usize) -> Result<Variable> =
            VAR [self], along(axes), Attr::Int(correction as isize) => x.var_axes(1, 1);
        pub fn std_axes(&self, axes: impl IntoAxes, correction: usize) -> Result<Variable> =
            STD [self], along(axes), Attr::Int(correction as isize) => x.std_axes(1, 1);
        pub fn logsumexp(&self, axes: impl IntoAxes) -> Result<Variable> = LOGSUMEXP [self], along(axes)
            => x.logsumexp(1);
        pub fn norm(&self) -> Result<Variable> = NORM [self] => x.norm();
        pub fn norm_axes(&self, axes: impl IntoAxes, p: f64) -> Result<Variable> =
            NORM_AXES [self], along(axes), checked("norm_axes", p, !p.is_nan(), "a number")?, Attr::Flag(false)
            => x.norm_axes(1, 2.0);
        pub fn flip(&self, axis: isize) -> Result<Variable> = FLIP [self], Attr::Int(axis) => x.flip(1);
        pub fn tril(&self, diagonal: isize) -> Result<Variable> = TRIL [self], Attr::Int(diagonal) => x.tril(0);
        pub fn triu(&self, diagonal: isize) -> Result<Variable> = TRIU [self], Attr::Int(diagonal) => x.triu(0);
        pub fn diagonal(&self, offset: isize) -> Result<Variable> = DIAGONAL [self], Attr::Int(offset)
            => x.diagonal(0);
        pub fn diag(&self, offset: isize) -> Result<Variable> =
            DIAG [self], Attr::Int(offset), Attr::Int(-1), Attr::Int(-1) => x.diag(0);
        pub fn repeat_interleave(&self, times: usize, axis: isize) -> Result<Variable> =
            REPEAT_INTERLEAVE [self], Attr::Int(times as isize), Attr::Int(axis) => x.repeat_interleave(2, 1);
        pub fn leaky_relu(&self, slope: f64) -> Result<Variable> = LEAKY_RELU [self], Attr::Number(slope)
            => x.leaky_relu(0.1);
        pub fn nan_to_num(&self, value: f64) -> Result<Variable> = NAN_TO_NUM [self], Attr::Number(value)
            => x.ln()?.nan_to_num(0.0), x.ln().nan_to_num(0.0);
        pub fn elu(&self, alpha: f64) -> Result<Variable> = ELU [self], Attr::Number(alpha) => x.elu(1.0);
        pub fn reshape(&self, shape: impl IntoDims) -> Result<Variable> = RESHAPE [self],
            dims("reshape", shape)?, Attr::NONE_KEPT => x.reshape([4]);
        pub fn broadcast_to(&self, shape: impl IntoDims) -> Result<Variable> =
            BROADCAST_TO [self], dims("broadcast_to", shape)? => x.broadcast_to([3, 2, 2]);
        /// A [copy for testing](Program::clone_program) changes nothing.
        pub fn dropout(&self, p: f64) -> Result<Variable> = DROPOUT [self],
            checked("dropout", p, (0.0..=1.0).contains(&p), "a probability")?, Attr::Flag(true)
            => x.dropout(1.0), x.dropout(1.0, true);
        /// Without an `end`, to the end of the axis, which may be free.
        pub fn slice_axis(&self, axis: isize, start: usize, end: impl Into<Option<usize>>, step: usize)
            -> Result<Variable> =
            SLICE [self], Attr::Int(axis), Attr::Int(start as isize),
            Attr::Int(end.into().map_or(-1, |end| end as isize)), Attr::Int(step as isize)
            => x.slice_axis(1, 1, 2, 1);
    }

    methods! {
        INDEXED of (x: Float64 [2, 2] = "[[0.25, -0.5], [0.75, 2.0]]", index: Int64 [2] = "[1_i64, 0]"):
        pub fn cross_entropy(&self, targets: &Variable) -> Result<Variable> = CROSS_ENTROPY [self, targets]
            => x.cross_entropy(&index);
        pub fn index_select(&self, axis: isize, index: &Variable) -> Result<Variable> =
            INDEX_SELECT [self, index], Attr::Int(axis) => x.index_select(0, &index);
        pub fn index_add(&self, axis: isize, index: &Variable, source: &Variable) -> Result<Variable> =
            INDEX_ADD [self, index, source], Attr::Int(axis) => x.index_add(0, &index, &x);
        pub fn segment_sum(&self, index: &Variable, segments: usize) -> Result<Variable> =
            SEGMENT_SUM [self, index], Attr::Int(segments as isize) => x.segment_sum(&index, 3);
    }

    methods! {
        GATHERED of (x: Float64 [2, 2] = "[[0.25, -0.5], [0.75, 2.0]]", index: Int64 [2, 2] = "[[1_i64, 0], [0, 1]]"):
        pub fn gather(&self, axis: isize, index: &Variable) -> Result<Variable> =
            GATHER [self, index], Attr::Int(axis) => x.gather(1, &index);
        pub fn scatter_add(&self, axis: isize, index: &Variable, source: &Variable) -> Result<Variable> =
            SCATTER_ADD [self, index, source], Attr::Int(axis) => x.scatter_add(1, &index, &x);
        pub fn scatter(&self, axis: isize, index: &Variable, source: &Variable) -> Result<Variable> =
            SCATTER [self, index, source], Attr::Int(axis) => x.scatter(1, &index, &x);
    }

    methods! {
        PAIRED of (x: Float64 [3] = "[0.25, 0.5, 0.75]", t: Float64 [3] = "[0.0, 1.0, 0.5]"):
        pub fn binary_cross_entropy(&self, targets: &Variable) -> Result<Variable> =
            OF_PROBABILITIES [self, targets] => x.binary_cross_entropy(&t);
        pub fn binary_cross_entropy_with_logits(&self, targets: &Variable) -> Result<Variable> =
            OF_LOGITS [self, targets] => x.binary_cross_entropy_with_logits(&t);
        pub fn smooth_l1_loss(&self, target: &Variable) -> Result<Variable> = SMOOTH_L1 [self, target]
            => x.smooth_l1_loss(&t);
        pub fn searchsorted(&self, values: &Variable, right: bool) -> Result<Variable> =
            SEARCHSORTED [self, values], Attr::Flag(right) => x.searchsorted(&t, false);
    }

    methods! {
        POOLED of (x: Float64 [1, 1, 2, 4] = "[[[[1.0, 2.0, 3.0, 4.0], [8.0, 7.0, 6.0, 5.0]]]]"):
        pub fn max_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> =
            MAX_POOL2D [self], Attr::Pairs(options.into().parts().to_vec()) => x.max_pool2d(2);
        pub fn avg_pool2d(&self, options: impl Into<PoolOptions>) -> Result<Variable> =
            AVG_POOL2D [self], Attr::Pairs(options.into().parts().to_vec()) => x.avg_pool2d(2);
    }

    traced! {
        TRACED of (x: Float64 [2, 2] = "[[0.25, -0.5], [0.75, 2.0]]"):
        pub fn swap_axes(&self, a: isize, b: isize) -> Result<Variable> = [self] x => Ok(x.swap_axes(a, b))
            => x.swap_axes(0, 1);
        pub fn unsqueeze(&self, axis: isize) -> Result<Variable> = [self] x => Ok(x.unsqueeze(axis))
            => x.unsqueeze(0);
        pub fn squeeze(&self, axis: isize) -> Result<Variable> = [self] x => x.try_squeeze(axis)
            => x.slice_axis(1, 0, 1, 1)?.squeeze(1), x.slice_axis(1, 0, 1, 1).squeeze(1);
        pub fn pad(&self, widths: &[[usize; 2]], padding: Padding) -> Result<Variable> =
            [self] x, widths = widths.to_vec() => x.try_pad(&widths, padding)
            => x.pad(&[[1, 0]], autograd_core::Padding::Replicate);
        pub fn repeat(&self, times: &[usize]) -> Result<Variable> =
            [self] x, times = times.to_vec() => Ok(x.repeat(&times)) => x.repeat(&[1, 2]);
        pub fn roll(&self, shift: isize, axis: isize) -> Result<Variable> = [self] x => Ok(x.roll(shift, axis))
            => x.roll(1, 0);
        pub fn select(&self, axis: isize, index: usize) -> Result<Variable> = [self] x => Ok(x.select(axis, index))
            => x.select(1, 0);
        pub fn clamp(&self, low: f64, high: f64) -> Result<Variable> = [self] x => Ok(x.clamp(low, high))
            => x.clamp(0.0, 1.0);
    }

    traced! {
        TRACED_LOSSES of (x: Float64 [3] = "[0.25, 0.5, 0.75]", t: Float64 [3] = "[0.0, 1.0, 0.5]"):
        pub fn mse_loss(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_mse_loss(&t)
            => x.mse_loss(&t);
        pub fn l1_loss(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_l1_loss(&t)
            => x.l1_loss(&t);
        pub fn huber_loss(&self, target: &Variable, delta: f64) -> Result<Variable> =
            [self, target] (x, t) => x.try_huber_loss(&t, delta) => x.huber_loss(&t, 0.5);
        pub fn kl_div(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_kl_div(&t)
            => x.kl_div(&t);
    }

    /// As [`Tensor::transpose`](crate::Tensor::transpose): swaps the last two axes.
    ///
    #[doc = example!((x: Float64 [2, 2] = "[[0.25, -0.5], [0.75, 2.0]]") "x.transpose()")]
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

    /// As [`Tensor::where_else`](crate::Tensor::where_else): `on` where this mask of bools is true, `off`
    /// elsewhere; one of the two may be a number.
    ///
    #[doc = example!(
        (x: Float64 [2] = "[0.25, -0.5]") "x.greater(0.0)?.where_else(&x, 1.0)",
        "x.gt_scalar(0.0).where_else(&x, 1.0)"
    )]
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if this is no mask, or shapes or element types do not fit.
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
    /// [`Error::Program`](crate::Error::Program) if shapes, element types or options do not fit.
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

    /// As [`Tensor::masked_fill`](crate::Tensor::masked_fill): `element` where `mask` is true.
    ///
    #[doc = example!(
        (x: Float64 [2] = "[0.25, -0.5]") "x.masked_fill(&x.less(0.0)?, 0.0)",
        "x.masked_fill(&x.lt_scalar(0.0), 0.0)"
    )]
    ///
    /// # Errors
    ///
    /// As [`Variable::where_else`].
    #[track_caller]
    pub fn masked_fill(&self, mask: &Variable, element: f64) -> Result<Variable> {
        mask.where_else(element, self)
    }

    /// As [`Tensor::chunk`](crate::Tensor::chunk), for float types, along an axis that is not free.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let x = Program::new().data("x", [-1, 5], DType::Float32)?;
    /// let parts = x.chunk(2, 1)?;
    /// assert_eq!((parts[0].shape(), parts[1].shape()), (vec![None, Some(3)], vec![None, Some(2)]));
    /// assert!(x.chunk(2, 0).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program), as the heading above says.
    #[track_caller]
    pub fn chunk(&self, parts: usize, axis: isize) -> Result<Vec<Variable>> {
        fn cut<T: Float>(x: &Tensor<T>, (parts, axis): (usize, isize)) -> Values {
            x.chunk(parts, axis).into_iter().map(AnyTensor::from).collect()
        }
        let run = move |values| match one(values)? {
            AnyTensor::Float32(x) => Ok(cut(&x, (parts, axis))),
            AnyTensor::Float64(x) => Ok(cut(&x, (parts, axis))),
            other => Err(not_numbers(&other).into()),
        };
        self.program.method("chunk", &[self], run)
    }
}

/// The names of the methods here, all of which tensors have too, for a test of each.
pub fn names_of_methods() -> impl Iterator<Item = &'static str> {
    let others = &["transpose", "where_else", "conv2d", "masked_fill", "chunk"];
    let lists = [
        Variable::REDUCED,
        Variable::COMPARED,
        Variable::COMPUTED,
        Variable::INDEXED,
        Variable::GATHERED,
        Variable::PAIRED,
        Variable::POOLED,
        Variable::TRACED,
        Variable::TRACED_LOSSES,
        others,
    ];
    lists.into_iter().flatten().copied()
}

impl Program {
    /// As [`Tensor::einsum`](crate::Tensor::einsum), for float types: labelled sums of products.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!(program.einsum("ij,ij->i", &[&x, &x])?.shape(), [None]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if that function returns an error.
    #[track_caller]
    pub fn einsum(&self, equation: &str, operands: &[&Variable]) -> Result<Variable> {
        let equation = equation.to_owned();
        let run = move |values: Values| match values.first() {
            Some(AnyTensor::Float32(_)) => {
                computed(Tensor::try_einsum(&equation, &all::<f32>(&values)?))
            }
            _ => computed(Tensor::try_einsum(&equation, &all::<f64>(&values)?)),
        };
        Ok(self.method("einsum", operands, run)?.remove(0))
    }
}
