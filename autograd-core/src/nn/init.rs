//! Initial values of parameters.
//!
//! Each function returns a new [`parameter`] of the given shape. Random numbers come from the process-wide
//! generator. In the formulas `fan` is the number of inputs of each output ([`Fan::In`]) or of outputs of each input
//! ([`Fan::Out`]). It follows from a shape `[outputs, inputs, ..]`, that of linear and convolution weights
//! here and in PyTorch: with `r` the product of the axes after the second (the window), `fan_in = inputs r`
//! and `fan_out = outputs r`. A shape with fewer than two axes has no fan: a function
//! with a fan panics.
//!
//! ```
//! use autograd_core::Tensor;
//! use autograd_core::nn::init::{self, Fan, Nonlinearity};
//!
//! // He et al. 2015, for layers with ReLU between them.
//! let w: Tensor = init::kaiming_normal([128, 64], Fan::In, Nonlinearity::Relu.gain());
//! assert!(!w.stop_gradient());
//! let std = w.std_axes(&[], 1).item();
//! assert!((std - (2.0_f32 / 64.0).sqrt()).abs() < 0.01);
//! ```

use super::parameter;
use crate::array::{IntoShape, Shape};
use crate::graph::Tensor;
use crate::ops::Float;

/// Creates zeros of this shape.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let bias: Tensor = init::zeros([2]);
/// assert_eq!((bias.to_vec(), bias.stop_gradient()), (vec![0.0, 0.0], false));
/// ```
#[track_caller]
pub fn zeros<T: Float>(shape: impl IntoShape) -> Tensor<T> {
    parameter(Tensor::zeros(shape))
}

/// Creates ones of this shape.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let scale: Tensor = init::ones([2]);
/// assert_eq!(scale.to_vec(), [1.0, 1.0]);
/// ```
#[track_caller]
pub fn ones<T: Float>(shape: impl IntoShape) -> Tensor<T> {
    parameter(Tensor::ones(shape))
}

/// Creates numbers equal to `value`, of this shape.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let bias: Tensor = init::constant([2], 0.01);
/// assert_eq!(bias.to_vec(), [0.01, 0.01]);
/// ```
#[track_caller]
pub fn constant<T: Float>(shape: impl IntoShape, value: f64) -> Tensor<T> {
    parameter(Tensor::full(shape, T::from_f64(value)))
}

/// Creates uniformly distributed numbers in `[low, high)`, with the panics of [`Tensor::uniform`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let w: Tensor = init::uniform([4, 3], -0.1, 0.1);
/// assert!(w.abs().max().item() <= 0.1);
/// ```
#[track_caller]
pub fn uniform<T: Float>(shape: impl IntoShape, low: f64, high: f64) -> Tensor<T> {
    parameter(Tensor::uniform(shape, low, high))
}

/// Creates normally distributed numbers with the given mean and standard deviation, with the panics of
/// [`Tensor::normal`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let w: Tensor = init::normal([4, 3], 0.0, 0.02);
/// assert_eq!(w.shape(), [4, 3]);
/// ```
#[track_caller]
pub fn normal<T: Float>(shape: impl IntoShape, mean: f64, std: f64) -> Tensor<T> {
    parameter(Tensor::normal(shape, mean, std))
}

/// Uniform in `±gain sqrt(6 / (fan_in + fan_out))`: Glorot and Bengio 2010.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let w: Tensor<f64> = init::xavier_uniform([4, 2], 1.0);
/// assert!(w.abs().max().item() <= 1.0);
/// ```
///
/// # Panics
///
/// If the shape has fewer than two axes.
#[doc(alias = "glorot_uniform")]
#[track_caller]
pub fn xavier_uniform<T: Float>(shape: impl IntoShape, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let bound = gain * (6.0 / (fan(&shape, Fan::In) + fan(&shape, Fan::Out))).sqrt();
    uniform(shape.into_vec(), -bound, bound)
}

/// Normal with mean 0 and deviation `gain sqrt(2 / (fan_in + fan_out))`: Glorot and Bengio 2010.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init;
///
/// let w: Tensor<f64> = init::xavier_normal([400, 100], 1.0);
/// assert!((w.std_axes(.., 0).item() - (2.0_f64 / 500.0).sqrt()).abs() < 0.01);
/// ```
///
/// # Panics
///
/// If the shape has fewer than two axes.
#[doc(alias = "glorot_normal")]
#[track_caller]
pub fn xavier_normal<T: Float>(shape: impl IntoShape, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let std = gain * (2.0 / (fan(&shape, Fan::In) + fan(&shape, Fan::Out))).sqrt();
    normal(shape.into_vec(), 0.0, std)
}

/// Uniform in `±gain sqrt(3 / fan)`: He et al. 2015. PyTorch's default for linear and convolution
/// weights is this with [`Fan::In`] and the gain `sqrt(1 / 3)`, which is `±1 / sqrt(fan_in)`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init::{self, Fan};
///
/// let w: Tensor<f64> = init::kaiming_uniform([8, 4], Fan::In, (1.0_f64 / 3.0).sqrt());
/// assert!(w.abs().max().item() <= 0.5);
/// ```
///
/// # Panics
///
/// If the shape has fewer than two axes.
#[doc(alias = "he_uniform")]
#[track_caller]
pub fn kaiming_uniform<T: Float>(shape: impl IntoShape, mode: Fan, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let bound = gain * (3.0 / fan(&shape, mode)).sqrt();
    uniform(shape.into_vec(), -bound, bound)
}

/// Normal with mean 0 and standard deviation `gain / sqrt(fan)`: He et al. 2015.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::init::{self, Fan};
///
/// let w: Tensor<f64> = init::kaiming_normal([100, 400], Fan::In, 1.0);
/// assert!((w.std_axes(.., 0).item() - 0.05).abs() < 0.005);
/// ```
///
/// # Panics
///
/// If the shape has fewer than two axes.
#[doc(alias = "he_normal")]
#[track_caller]
pub fn kaiming_normal<T: Float>(shape: impl IntoShape, mode: Fan, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let std = gain / fan(&shape, mode).sqrt();
    normal(shape.into_vec(), 0.0, std)
}

/// The side of a weight that is counted; see the [module](self).
///
/// ```
/// use autograd_core::nn::init::{self, Fan};
///
/// // 300 outputs, 3 inputs: the bounds are `sqrt(3 / 3)` and `sqrt(3 / 300)`.
/// let largest = |fan| init::kaiming_uniform::<f64>([300, 3], fan, 1.0).abs().max().item();
/// assert!(largest(Fan::In) > 0.9 && largest(Fan::Out) <= 0.1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// The number of inputs of each output: preserves the variance in the forward pass.
    In,
    /// The number of outputs of each input: preserves the variance in the backward pass.
    Out,
}

#[track_caller]
fn fan(shape: &Shape, mode: Fan) -> f64 {
    let &[outputs, inputs, ref window @ ..] = &shape[..] else {
        panic!("init: a fan needs a shape of two or more axes, found {:?}", &shape[..]);
    };
    let side = match mode {
        Fan::In => inputs,
        Fan::Out => outputs,
    };
    // Without inputs or outputs the weight is empty, and its numbers need no finite bound.
    window.iter().fold(side as f64, |fan, &n| fan * n as f64).max(1.0)
}

/// The nonlinearity after a layer, for the gain that undoes its effect on the variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    /// None: gain 1.
    Linear,
    /// The logistic function: gain 1.
    Sigmoid,
    /// Gain 5 / 3.
    Tanh,
    /// Gain `sqrt(2)`.
    Relu,
    /// With this slope `a` below 0: gain `sqrt(2 / (1 + a²))`.
    LeakyRelu(f64),
}

impl Nonlinearity {
    /// Returns the recommended gain, that of PyTorch's `calculate_gain`.
    ///
    /// ```
    /// use autograd_core::nn::init::Nonlinearity;
    ///
    /// assert_eq!(Nonlinearity::Tanh.gain(), 5.0 / 3.0);
    /// ```
    pub fn gain(self) -> f64 {
        match self {
            Self::Linear | Self::Sigmoid => 1.0,
            Self::Tanh => 5.0 / 3.0,
            Self::Relu => std::f64::consts::SQRT_2,
            Self::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        }
    }
}
