//! Initial values of parameters.
//!
//! Each function returns a new [`parameter`]. Random numbers come from the process-wide generator. In the
//! formulas `fan` is the number of inputs of each output ([`Fan::In`]) or of outputs of each input
//! ([`Fan::Out`]). It follows from a shape `[outputs, inputs, ..]`, that of linear and convolution weights
//! here and in PyTorch: with `r` the product of the axes after the second (the window), `fan_in = inputs r`
//! and `fan_out = outputs r`. A shape with fewer than two axes has no fan: the function panics.
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

/// Creates zeros.
#[track_caller]
pub fn zeros<T: Float>(shape: impl IntoShape) -> Tensor<T> {
    parameter(Tensor::zeros(shape))
}

/// Creates ones.
#[track_caller]
pub fn ones<T: Float>(shape: impl IntoShape) -> Tensor<T> {
    parameter(Tensor::ones(shape))
}

/// Creates equal numbers.
#[track_caller]
pub fn constant<T: Float>(shape: impl IntoShape, value: f64) -> Tensor<T> {
    parameter(Tensor::full(shape, T::from_f64(value)))
}

/// Creates uniformly distributed numbers in `[low, high)`.
#[track_caller]
pub fn uniform<T: Float>(shape: impl IntoShape, low: f64, high: f64) -> Tensor<T> {
    parameter(Tensor::uniform(shape, low, high))
}

/// Creates normally distributed numbers with the given mean and standard deviation.
#[track_caller]
pub fn normal<T: Float>(shape: impl IntoShape, mean: f64, std: f64) -> Tensor<T> {
    parameter(Tensor::normal(shape, mean, std))
}

/// Uniform in `±gain sqrt(6 / (fan_in + fan_out))`: Glorot and Bengio 2010.
#[doc(alias = "glorot_uniform")]
#[track_caller]
pub fn xavier_uniform<T: Float>(shape: impl IntoShape, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let bound = gain * (6.0 / (fan(&shape, Fan::In) + fan(&shape, Fan::Out))).sqrt();
    uniform(shape.into_vec(), -bound, bound)
}

/// Normal with mean 0 and deviation `gain sqrt(2 / (fan_in + fan_out))`: Glorot and Bengio 2010.
#[doc(alias = "glorot_normal")]
#[track_caller]
pub fn xavier_normal<T: Float>(shape: impl IntoShape, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let std = gain * (2.0 / (fan(&shape, Fan::In) + fan(&shape, Fan::Out))).sqrt();
    normal(shape.into_vec(), 0.0, std)
}

/// Uniform in `±gain sqrt(3 / fan)`: He et al. 2015. PyTorch's default for linear and convolution
/// weights is this with [`Fan::In`] and the gain `sqrt(1 / 3)`, which is `±1 / sqrt(fan_in)`.
#[doc(alias = "he_uniform")]
#[track_caller]
pub fn kaiming_uniform<T: Float>(shape: impl IntoShape, mode: Fan, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let bound = gain * (3.0 / fan(&shape, mode)).sqrt();
    uniform(shape.into_vec(), -bound, bound)
}

/// Normal with mean 0 and standard deviation `gain / sqrt(fan)`: He et al. 2015.
#[doc(alias = "he_normal")]
#[track_caller]
pub fn kaiming_normal<T: Float>(shape: impl IntoShape, mode: Fan, gain: f64) -> Tensor<T> {
    let shape = shape.into_shape();
    let std = gain / fan(&shape, mode).sqrt();
    normal(shape.into_vec(), 0.0, std)
}

/// The side of a weight that is counted; see the [module](self).
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
