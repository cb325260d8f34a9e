//! More methods of variables, each named as the method of [`Tensor`](crate::Tensor): as one operator, or as a
//! trace of several.

use super::program::{Program, Variable};
use super::table;
use super::values::{Values, all, computed, float, not_numbers, one};
use crate::array::IntoAxes;
use crate::error::Result;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::table::attr::Attr;
use crate::ops::{Float, Padding};

/// Methods that add one operator: documentation and signature, entry of the table, inputs, attributes.
macro_rules! methods {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)*) -> Result<Variable> =
            $entry:ident [$($input:expr),*] $(, $attr:expr)*;
    )*) => {$(
        #[doc = concat!("As [`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), "):")]
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&$self $(, $arg: $type)*) -> Result<Variable> {
            $self.program.one(&table::$entry, [$($attr),*], &[$($input),*])
        }
    )*};
}

/// Traced methods for float types: documentation and signature, inputs, owned arguments, and the eager ops.
macro_rules! traced {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident(&$self:ident $(, $arg:ident: $type:ty)*) -> Result<Variable> =
            [$($input:expr),*] $x:tt $(, $own:ident = $kept:expr)* => $y:expr;
    )*) => {$(
        #[doc = concat!("As [`Tensor::", stringify!($name), "`](crate::Tensor::", stringify!($name), "):")]
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&$self $(, $arg: $type)*) -> Result<Variable> {
            $(let $own = $kept;)*
            let run = move |values| float!(values, $x => $y);
            Ok($self.program.method(stringify!($name), &[$($input),*], run)?.remove(0))
        }
    )*};
}

fn axes(axes: impl IntoAxes) -> Attr {
    Attr::Ints(axes.as_axes().to_vec())
}

/// # Along axes, parts, and losses
///
/// As the methods of [`Tensor`](crate::Tensor) of the same names. Each returns
/// [`Error::Program`](crate::Error::Program) if that method panics or returns an error, or if a length in its
/// arguments depends on a free axis. Shapes, `clamp` and losses of several operators are for float types.
impl Variable {
    methods! {
        /// the cumulative sums along an axis.
        pub fn cumsum(&self, axis: isize) -> Result<Variable> = CUMSUM [self], Attr::Int(axis), Attr::Flag(false);
        /// the cumulative products along an axis.
        pub fn cumprod(&self, axis: isize) -> Result<Variable> = CUMPROD [self], Attr::Int(axis);
        /// the position of the least element along an axis.
        pub fn argmin(&self, axis: isize) -> Result<Variable> = ARGMIN [self], Attr::Int(axis);
        /// the variance along axes, with their length minus `correction` as the divisor.
        pub fn var_axes(&self, over: impl IntoAxes, correction: usize) -> Result<Variable> =
            VAR [self], axes(over), Attr::Int(correction as isize);
        /// the square root of the variance.
        pub fn std_axes(&self, over: impl IntoAxes, correction: usize) -> Result<Variable> =
            STD [self], axes(over), Attr::Int(correction as isize);
        /// the logarithm of the sum of exponentials.
        pub fn logsumexp(&self, over: impl IntoAxes) -> Result<Variable> = LOGSUMEXP [self], axes(over);
        /// the Euclidean norm of all elements.
        pub fn norm(&self) -> Result<Variable> = NORM [self];
        /// an axis in reverse order.
        pub fn flip(&self, axis: isize) -> Result<Variable> = FLIP [self], Attr::Int(axis);
        /// the elements on and below a diagonal.
        pub fn tril(&self, diagonal: isize) -> Result<Variable> = TRIL [self], Attr::Int(diagonal);
        /// the elements on and above a diagonal.
        pub fn triu(&self, diagonal: isize) -> Result<Variable> = TRIU [self], Attr::Int(diagonal);
        /// a copy with slices of `source` added at the positions of `index`.
        pub fn index_add(&self, axis: isize, index: &Variable, source: &Variable) -> Result<Variable> =
            INDEX_ADD [self, index, source], Attr::Int(axis);
        /// a copy with elements of `source` added at the positions of `index`.
        pub fn scatter_add(&self, axis: isize, index: &Variable, source: &Variable) -> Result<Variable> =
            SCATTER_ADD [self, index, source], Attr::Int(axis);
        /// `x` where `x > 0`, else `slope * x`.
        pub fn leaky_relu(&self, slope: f64) -> Result<Variable> = LEAKY_RELU [self], Attr::Number(slope);
        /// `x` where `x > 0`, else `alpha * (exp(x) - 1)`.
        pub fn elu(&self, alpha: f64) -> Result<Variable> = ELU [self], Attr::Number(alpha);
        /// the mean of squares of small differences and of large differences.
        pub fn smooth_l1_loss(&self, target: &Variable) -> Result<Variable> = SMOOTH_L1 [self, target];
        /// the mean cross entropy of logits.
        pub fn binary_cross_entropy_with_logits(&self, targets: &Variable) -> Result<Variable> =
            OF_LOGITS [self, targets];
    }

    traced! {
        /// two axes swapped.
        pub fn swap_axes(&self, a: isize, b: isize) -> Result<Variable> = [self] x => Ok(x.swap_axes(a, b));
        /// a new axis of length 1.
        pub fn unsqueeze(&self, axis: isize) -> Result<Variable> = [self] x => Ok(x.unsqueeze(axis));
        /// an axis of length 1 removed.
        pub fn squeeze(&self, axis: isize) -> Result<Variable> = [self] x => x.try_squeeze(axis);
        /// more elements at the ends of the last axes.
        pub fn pad(&self, widths: &[[usize; 2]], padding: Padding) -> Result<Variable> =
            [self] x, widths = widths.to_vec() => x.try_pad(&widths, padding);
        /// the whole repeated along each axis.
        pub fn repeat(&self, times: &[usize]) -> Result<Variable> =
            [self] x, times = times.to_vec() => Ok(x.repeat(&times));
        /// the elements shifted along an axis, with those from its end at its start.
        pub fn roll(&self, shift: isize, axis: isize) -> Result<Variable> = [self] x => Ok(x.roll(shift, axis));
        /// one position of an axis, which is removed.
        pub fn select(&self, axis: isize, index: usize) -> Result<Variable> = [self] x => Ok(x.select(axis, index));
        /// the elements limited to `[low, high]`.
        pub fn clamp(&self, low: f64, high: f64) -> Result<Variable> = [self] x => Ok(x.clamp(low, high));
        /// the mean of the squared differences.
        pub fn mse_loss(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_mse_loss(&t);
        /// the mean of the absolute differences.
        pub fn l1_loss(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_l1_loss(&t);
        /// the mean of squares of differences up to `delta`, and of multiples of larger ones.
        pub fn huber_loss(&self, target: &Variable, delta: f64) -> Result<Variable> =
            [self, target] (x, t) => x.try_huber_loss(&t, delta);
        /// the divergence of the target's probabilities from those whose logarithms these elements are.
        pub fn kl_div(&self, target: &Variable) -> Result<Variable> = [self, target] (x, t) => x.try_kl_div(&t);
    }

    /// As [`Tensor::masked_fill`](crate::Tensor::masked_fill): `element` where `mask` is true.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Variable, element: f64) -> Result<Variable> {
        mask.where_else(element, self)
    }

    /// As [`Tensor::chunk`](crate::Tensor::chunk), for float types: at most `parts` parts along an axis,
    /// which must not be free.
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

impl Program {
    /// As [`Tensor::einsum`](crate::Tensor::einsum), for float types: labelled sums of products.
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
