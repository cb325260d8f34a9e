//! Layers with weights: affine map, convolution, embedding.

use super::Module;
use super::init::{self, Fan};
use super::norm::wrong_shape;
use crate::error::Error;
use crate::graph::Tensor;
use crate::ops::{Conv1dOptions, Conv2dOptions, Float, IntoPair, check_indices, pairs};

/// Creates weight and bias with PyTorch's default: uniform in `±1 / sqrt(fan_in)`.
#[track_caller]
fn weight_and_bias<T: Float>(shape: &[usize]) -> (Tensor<T>, Option<Tensor<T>>) {
    let weight = init::kaiming_uniform(shape, Fan::In, (1.0_f64 / 3.0).sqrt());
    let fan: f64 = shape[1..].iter().map(|&n| n as f64).product();
    let bound = if fan > 0.0 { 1.0 / fan.sqrt() } else { 0.0 };
    (weight, Some(init::uniform(shape[0], -bound, bound)))
}

/// The affine map `x wᵀ + b`, from `[.., inputs]` to `[.., outputs]`.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::Linear;
///
/// let layer = Linear::<f32>::new(3, 2);
/// assert_eq!(layer.forward(&Tensor::zeros([5, 3])).shape(), [5, 2]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Linear<T: Float = f32> {
    /// `[outputs, inputs]`, as in PyTorch; Paddle has the transpose.
    pub weight: Tensor<T>,
    /// `[outputs]`
    pub bias: Option<Tensor<T>>,
}

impl<T: Float> Linear<T> {
    /// Creates a layer with weights and bias uniform in `±1 / sqrt(inputs)`: PyTorch's default.
    ///
    /// ```
    /// use autograd_core::nn::Linear;
    ///
    /// let layer = Linear::<f64>::new(4, 2);
    /// assert_eq!(layer.weight.shape(), [2, 4]);
    /// assert!(layer.weight.abs().max().item() <= 0.5);
    /// ```
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let (weight, bias) = weight_and_bias(&[outputs, inputs]);
        Self { weight, bias }
    }

    /// Removes the bias.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::Linear;
    ///
    /// let layer = Linear::<f64>::new(3, 2).without_bias();
    /// assert_eq!(layer.forward(&Tensor::zeros([1, 3])).to_vec(), [0.0, 0.0]);
    /// ```
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { bias: None, ..self }
    }

    pairs! {
        /// Applies the map to `x`, `[.., inputs]`, and returns `[.., outputs]`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::Linear;
        ///
        /// let (weight, bias) = (Tensor::from([[1.0, 2.0]]), Some(Tensor::from([0.5])));
        /// let y = Linear { weight, bias }.forward(&Tensor::from([[10.0, 100.0]]));
        /// assert_eq!(y.to_vec(), [210.5]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape if
            "`x` is not `[.., inputs]`",
            use "nn::Linear";
            "Linear::<f32>::new(3, 2).try_forward(&Tensor::ones([5, 4]))" => Shape
        {
            let y = x.try_linear(&self.weight, self.bias.as_ref());
            y.map_err(|error| error.of_layer("Linear"))
        }
    }
}

/// A convolution of signals `[n, channels, length]`, computed on images of height 1. See [`Conv`].
///
/// ```
/// use autograd_core::nn::Conv1d;
/// use autograd_core::{Conv1dOptions, Tensor};
///
/// let layer = Conv1d::<f32>::new(4, 8, 3, Conv1dOptions::new().padding(1).stride(2));
/// assert_eq!(layer.forward(&Tensor::zeros([2, 4, 10])).shape(), [2, 8, 5]);
/// ```
pub type Conv1d<T = f32> = Conv<T, 1>;

/// A convolution of images `[n, channels, height, width]`; see [`Tensor::conv2d`] and [`Conv`].
///
/// ```
/// use autograd_core::nn::Conv2d;
/// use autograd_core::{Conv2dOptions, Tensor};
///
/// let layer = Conv2d::<f32>::new(1, 8, 3, Conv2dOptions::new().padding(1));
/// assert_eq!(layer.forward(&Tensor::zeros([2, 1, 6, 5])).shape(), [2, 8, 6, 5]);
/// ```
pub type Conv2d<T = f32> = Conv<T, 2>;

/// A convolution, in two forms: [`Conv1d`] and [`Conv2d`]. The formula is that of [`Tensor::conv2d`].
///
/// ```
/// use autograd_core::nn::Conv2d;
/// use autograd_core::{Conv2dOptions, Tensor};
///
/// let layer = Conv2d::<f32>::new(1, 8, [3, 5], Conv2dOptions::new());
/// assert_eq!(layer.forward(&Tensor::zeros([2, 1, 6, 5])).shape(), [2, 8, 4, 1]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Conv<T: Float, const AXES: usize> {
    /// `[outputs, channels / groups, kernel]` or `[outputs, channels / groups, kernel height, kernel width]`
    pub weight: Tensor<T>,
    /// `[outputs]`
    pub bias: Option<Tensor<T>>,
    #[module(skip)]
    options: Conv2dOptions,
}

impl<T: Float> Conv<T, 1> {
    /// Creates a layer with weights and bias uniform in `±1 / sqrt(fan_in)`, where `fan_in` is the number of
    /// inputs of an output: PyTorch's default.
    ///
    /// ```
    /// use autograd_core::Conv1dOptions;
    /// use autograd_core::nn::Conv1d;
    ///
    /// let layer = Conv1d::<f32>::new(4, 8, 3, Conv1dOptions::new().groups(2));
    /// assert_eq!(layer.weight.shape(), [8, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the channels cannot be divided into `options`' groups.
    #[track_caller]
    pub fn new(channels: usize, outputs: usize, kernel: usize, options: Conv1dOptions) -> Self {
        Self::of_shape(channels, outputs, &[kernel], options.of_images())
    }
}

impl<T: Float> Conv<T, 2> {
    /// Creates a layer with weights and bias uniform in `±1 / sqrt(fan_in)`, where `fan_in` is the number of
    /// inputs of an output: PyTorch's default.
    ///
    /// ```
    /// use autograd_core::Conv2dOptions;
    /// use autograd_core::nn::Conv2d;
    ///
    /// let layer = Conv2d::<f32>::new(4, 8, [3, 5], Conv2dOptions::new().groups(2));
    /// assert_eq!(layer.weight.shape(), [8, 2, 3, 5]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the channels cannot be divided into `options`' groups.
    #[track_caller]
    pub fn new(
        channels: usize,
        outputs: usize,
        kernel: impl IntoPair,
        options: Conv2dOptions,
    ) -> Self {
        Self::of_shape(channels, outputs, &kernel.into_pair(), options)
    }
}

impl<T: Float, const AXES: usize> Conv<T, AXES> {
    const OP: &'static str = if AXES == 1 { "Conv1d" } else { "Conv2d" };

    #[track_caller]
    fn of_shape(channels: usize, outputs: usize, kernel: &[usize], options: Conv2dOptions) -> Self {
        let (layer, groups) = (Self::OP, options.groups);
        assert!(
            groups > 0 && channels.is_multiple_of(groups) && outputs.is_multiple_of(groups),
            "{layer}: {channels} channels and {outputs} outputs cannot be divided into {groups} groups"
        );
        let (weight, bias) = weight_and_bias(&[&[outputs, channels / groups], kernel].concat());
        Self { weight, bias, options }
    }

    /// Removes the bias.
    ///
    /// ```
    /// use autograd_core::Conv2dOptions;
    /// use autograd_core::nn::Conv2d;
    ///
    /// let layer = Conv2d::<f32>::new(1, 8, 3, Conv2dOptions::new());
    /// assert!(layer.bias.is_some() && layer.without_bias().bias.is_none());
    /// ```
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { bias: None, ..self }
    }

    pairs! {
        /// Applies the convolution to `x`.
        ///
        /// ```
        /// use autograd_core::nn::Conv2d;
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// let mut layer = Conv2d::new(1, 1, 2, Conv2dOptions::new()).without_bias();
        /// layer.weight = Tensor::ones([1, 1, 2, 2]);
        /// let image = Tensor::from([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]);
        /// assert_eq!(layer.forward(&image).to_vec(), [12.0, 16.0]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape | Value | TooLarge if
            "`x` has other axes or channels than the layer takes or is smaller than the kernel, or an option \
            is out of range",
            use "Conv2dOptions"; use "nn::Conv2d";
            "Conv2d::<f32>::new(3, 8, 5, Conv2dOptions::new())\n    .try_forward(&Tensor::ones([1, 1, 6, 6]))" => Shape
        {
            let inputs = self.weight.shape().get(1).copied().unwrap_or_default();
            let channels = inputs * self.options.groups;
            let of_channels = x.shape().get(1) == Some(&channels);
            let (bias, named) = (self.bias.as_ref(), |error: Error| error.of_layer(Self::OP));
            if AXES != 1 {
                // A wrong number of channels is the fault of the input, not of the weight.
                if x.ndim() == 4 && !of_channels {
                    return wrong_shape("Conv2d", x, format!("of shape [n, {channels}, height, width]"));
                }
                return x.try_conv2d(&self.weight, bias, self.options).map_err(named);
            }
            if x.ndim() != 3 || !of_channels {
                return wrong_shape("Conv1d", x, format!("of shape [n, {channels}, length]"));
            }
            let Conv2dOptions { padding: [_, padding], dilation: [_, dilation], .. } = self.options;
            let kernel = self.weight.shape().get(2).copied().unwrap_or_default();
            let span = kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
            let least = span.saturating_sub(padding.saturating_mul(2));
            if x.shape()[2] < least {
                return wrong_shape("Conv1d", x, format!("at least {least} long, for one window to fit"));
            }
            let (images, weight) = (x.unsqueeze(2), self.weight.unsqueeze(2));
            images.try_conv2d(&weight, bias, self.options).map_err(named)?.try_squeeze(2)
        }
    }
}

/// A table of learned vectors, looked up by number.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::Embedding;
///
/// let table = Embedding::<f32>::new(10, 4);
/// let words = Tensor::from([[1, 2, 3], [3, 2, 1]]);
/// assert_eq!(table.forward(&words).shape(), [2, 3, 4]);
/// ```
#[derive(Clone, Debug, Module)]
pub struct Embedding<T: Float = f32> {
    /// `[entries, width]`
    pub weight: Tensor<T>,
}

impl<T: Float> Embedding<T> {
    /// Creates `entries` vectors of `width` standard normal numbers: PyTorch's default.
    ///
    /// ```
    /// use autograd_core::nn::Embedding;
    ///
    /// assert_eq!(Embedding::<f32>::new(10, 4).weight.shape(), [10, 4]);
    /// ```
    #[track_caller]
    pub fn new(entries: usize, width: usize) -> Self {
        Self { weight: init::normal([entries, width], 0.0, 1.0) }
    }

    pairs! {
        /// Returns the vector of each number, for `[..]` numbers: `[.., width]`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::Embedding;
        ///
        /// let table = Embedding { weight: Tensor::from([[1.0, 2.0], [3.0, 4.0]]) };
        /// assert_eq!(table.forward(&Tensor::from([1, 0])).to_vec(), [3.0, 4.0, 1.0, 2.0]);
        /// ```
        pub fn forward, try_forward(&self, numbers: &Tensor<i64>) -> Tensor<T>, Index if
            "a number is not below the count of entries",
            use "nn::Embedding";
            "Embedding::<f32>::new(10, 4).try_forward(&Tensor::from([10]))" => Index
        {
            let rows = self.weight.try_index_select(0, &numbers.flatten());
            let rows = rows.map_err(|error| {
                // The error has the position in `numbers`, not in the flattened list.
                let entries = self.weight.shape().first().copied().unwrap_or_default();
                let outside = check_indices("Embedding", "numbers", &numbers.read(), entries);
                outside.err().unwrap_or_else(|| error.of_layer("Embedding"))
            })?;
            let mut shape = numbers.shape().to_vec();
            shape.extend_from_slice(&self.weight.shape()[1..]);
            rows.try_reshape(shape)
        }
    }
}
