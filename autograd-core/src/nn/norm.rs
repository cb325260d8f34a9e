//! Layers that normalize each sample alone, or a batch.

use std::panic::Location;

use super::{Buffer, Mode, Module, init};
use crate::array::IntoShape;
use crate::engine::is_recomputing;
use crate::error::{Error, Result};
use crate::graph::{Composite, Tensor, no_grad};
use crate::ops::trace::is_tracing;
use crate::ops::{Float, batch_norm, layer_norm, options, pairs, scale_of};

fn check_field<T: Float>(
    op: &'static str,
    weight: &Tensor<T>,
    (name, field): (&str, &Tensor<T>),
) -> Result<()> {
    if field.len() == weight.len() || field.len() == 1 {
        return Ok(());
    }
    let expected = format!("of shape {:?}, as `weight` is", weight.shape());
    Err(Error::shape(op, name, expected, field.shape()))
}

/// Normalization over the last axes of each sample, with a learned scale and shift (Ba et al. 2016):
/// `(x - mean) / sqrt(var + eps) * weight + bias`, where `var` divides by the number of elements.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::LayerNorm;
///
/// let norm = LayerNorm::<f64>::new(2).eps(1e-6);
/// let y = norm.forward(&Tensor::from([[1.0, 3.0], [10.0, 30.0]]));
/// assert!((y.at(&[0, 1]) - 1.0).abs() < 1e-4 && (y.at(&[1, 0]) + 1.0).abs() < 1e-4);
/// ```
#[derive(Clone, Debug, Module)]
pub struct LayerNorm<T: Float = f32> {
    /// The scale, of the shape that is normalized; initially 1.
    pub weight: Tensor<T>,
    /// The shift, of the shape that is normalized; initially 0.
    pub bias: Tensor<T>,
    #[module(skip)]
    eps: f64,
}

impl<T: Float> LayerNorm<T> {
    /// Creates a layer for inputs whose last axes are `shape`. `eps` is 1e-5.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::LayerNorm;
    ///
    /// let norm = LayerNorm::<f32>::new([3, 4]);
    /// assert_eq!(norm.forward(&Tensor::randn([2, 3, 4])).shape(), [2, 3, 4]);
    /// assert!(norm.try_forward(&Tensor::randn([2, 4])).is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// If the shape has no axis.
    #[track_caller]
    pub fn new(shape: impl IntoShape) -> Self {
        let weight = init::ones(shape);
        assert!(weight.ndim() > 0, "LayerNorm: there must be an axis to normalize over");
        let bias = init::zeros(weight.shape());
        Self { weight, bias, eps: 1e-5 }
    }

    options! {
        /// Sets `eps`, the number that is added under the root: 0 or more.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::LayerNorm;
        ///
        /// // The variance is 1.
        /// let y = LayerNorm::new(2).eps(3.0).forward(&Tensor::from([[1.0, 3.0]]));
        /// assert_eq!(y.to_vec(), [-0.5, 0.5]);
        /// ```
        pub fn eps(eps: f64);
    }

    pairs! {
        /// Normalizes `x`; the shape stays.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::LayerNorm;
        ///
        /// let mut norm = LayerNorm::new(2).eps(0.0);
        /// norm.bias = Tensor::from([10.0, 20.0]);
        /// assert_eq!(norm.forward(&Tensor::from([[1.0, 3.0]])).to_vec(), [9.0, 21.0]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape | Value if
            "the last axes of `x` are not those of the layer, or `eps` is below 0",
            use "nn::LayerNorm";
            "LayerNorm::<f32>::new(2).eps(-1.0).try_forward(&Tensor::ones([1, 2]))" => Value
        {
            check_eps("LayerNorm", self.eps)?;
            let axes = last_axes("LayerNorm", x, &self.weight)?;
            let weights = Some([&self.weight, &self.bias]);
            let y = layer_norm(x, weights, &axes, self.eps, Location::caller());
            y.map_err(|error| error.of_layer("LayerNorm"))
        }
    }
}

/// Normalization of groups of channels in each sample, with a learned scale and shift of each channel (Wu and
/// He 2018): `(x - mean) / sqrt(var + eps) * weight + bias`, where `var` divides by the number of elements.
/// As many groups as channels normalize each alone (instance normalization).
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::GroupNorm;
///
/// let norm = GroupNorm::<f64>::new(2, 4).eps(1e-6);
/// let y = norm.forward(&Tensor::from([[1.0, 3.0, 10.0, 30.0]]));
/// assert!((y.at(&[0, 1]) - 1.0).abs() < 1e-4 && (y.at(&[0, 2]) + 1.0).abs() < 1e-4);
/// ```
#[doc(alias = "InstanceNorm")]
#[derive(Clone, Debug, Module)]
pub struct GroupNorm<T: Float = f32> {
    /// The scale, `[channels]`; initially 1.
    pub weight: Tensor<T>,
    /// The shift, `[channels]`; initially 0.
    pub bias: Tensor<T>,
    #[module(skip)]
    groups: usize,
    #[module(skip)]
    eps: f64,
}

impl<T: Float> GroupNorm<T> {
    /// Creates a layer for inputs `[n, channels, ..]` with the channels in `groups` groups. `eps` is 1e-5.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::GroupNorm;
    ///
    /// let norm = GroupNorm::<f32>::new(2, 4);
    /// assert_eq!(norm.weight.shape(), [4]);
    /// assert_eq!(norm.forward(&Tensor::randn([5, 4, 3])).shape(), [5, 4, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `groups` is 0 or does not divide `channels`.
    #[track_caller]
    pub fn new(groups: usize, channels: usize) -> Self {
        assert!(
            groups > 0 && channels.is_multiple_of(groups),
            "GroupNorm: {channels} channels cannot be divided into {groups} groups"
        );
        Self { weight: init::ones(channels), bias: init::zeros(channels), groups, eps: 1e-5 }
    }

    options! {
        /// Sets `eps`, the number that is added under the root: 0 or more.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::GroupNorm;
        ///
        /// // The variance is 1.
        /// let y = GroupNorm::new(1, 2).eps(3.0).forward(&Tensor::from([[1.0, 3.0]]));
        /// assert_eq!(y.to_vec(), [-0.5, 0.5]);
        /// ```
        pub fn eps(eps: f64);
    }

    pairs! {
        /// Normalizes `x`; the shape stays.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::GroupNorm;
        ///
        /// let mut norm = GroupNorm::new(1, 2).eps(0.0);
        /// norm.weight = Tensor::from([10.0, 100.0]);
        /// assert_eq!(norm.forward(&Tensor::from([[1.0, 3.0]])).to_vec(), [-10.0, 100.0]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape | Value if
            "`x` is not `[n, channels, ..]`, or `eps` is below 0",
            use "nn::GroupNorm";
            "GroupNorm::<f32>::new(2, 4).try_forward(&Tensor::ones([5, 3]))" => Shape
        {
            let channels = self.weight.len();
            let (n, rest) = match *x.shape() {
                [n, found, ref rest @ ..] if found == channels => (n, rest),
                _ => return wrong_shape("GroupNorm", x, format!("of shape [n, {channels}, ..]")),
            };
            check_eps("GroupNorm", self.eps)?;
            check_field("GroupNorm", &self.weight, ("bias", &self.bias))?;
            let in_group = channels / self.groups * rest.iter().product::<usize>();
            let grouped = x.try_reshape([n, self.groups, in_group])?;
            let y = layer_norm(&grouped, None, &[2], self.eps, Location::caller());
            let y = y.map_err(|error| error.of_layer("GroupNorm"))?.try_reshape(x.shape())?;
            let mut of_channels = vec![1; rest.len() + 1];
            of_channels[0] = channels;
            let bias = self.bias.try_broadcast_to([channels])?.try_reshape(&of_channels[..])?;
            Ok(y * self.weight.try_reshape(&of_channels[..])? + bias)
        }
    }
}

/// Division by the root mean square over the last axes, with a learned scale (Zhang and Sennrich
/// 2019): `x / sqrt(mean(x²) + eps) * weight`. Squares do not overflow or underflow.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::RmsNorm;
///
/// let norm = RmsNorm::<f64>::new(2).eps(1e-12);
/// let y = norm.forward(&Tensor::from([[1.0, 7.0], [1e200, 7e200]]));
/// assert!((y.at(&[0, 1]) - 1.4).abs() < 1e-12 && (y.at(&[1, 1]) - 1.4).abs() < 1e-12);
/// ```
#[doc(alias = "RMSNorm")]
#[derive(Clone, Debug, Module)]
pub struct RmsNorm<T: Float = f32> {
    /// The scale, of the shape that is normalized; initially 1.
    pub weight: Tensor<T>,
    #[module(skip)]
    eps: f64,
}

impl<T: Float> RmsNorm<T> {
    /// Creates a layer for inputs whose last axes are `shape`. `eps` is the type's epsilon, as in PyTorch.
    ///
    /// ```
    /// use autograd_core::Tensor;
    /// use autograd_core::nn::RmsNorm;
    ///
    /// let norm = RmsNorm::<f32>::new([3, 4]);
    /// assert_eq!(norm.forward(&Tensor::randn([2, 3, 4])).shape(), [2, 3, 4]);
    /// assert_eq!(norm.forward(&Tensor::zeros([3, 4])).to_vec(), [0.0; 12]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shape has no axis.
    #[track_caller]
    pub fn new(shape: impl IntoShape) -> Self {
        let weight = init::ones(shape);
        assert!(weight.ndim() > 0, "RmsNorm: there must be an axis to normalize over");
        Self { weight, eps: T::epsilon().into_f64() }
    }

    options! {
        /// Sets `eps`, the number that is added under the root: 0 or more.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::RmsNorm;
        ///
        /// // The mean of the squares is 1.
        /// let y = RmsNorm::new(2).eps(3.0).forward(&Tensor::from([[1.0, -1.0]]));
        /// assert_eq!(y.to_vec(), [0.5, -0.5]);
        /// ```
        pub fn eps(eps: f64);
    }

    pairs! {
        /// Normalizes `x`; the shape stays.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::RmsNorm;
        ///
        /// let mut norm = RmsNorm::new(2).eps(0.0);
        /// norm.weight = Tensor::from([10.0, 100.0]);
        /// assert_eq!(norm.forward(&Tensor::from([[2.0, -2.0]])).to_vec(), [10.0, -100.0]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape | Value if
            "the last axes of `x` are not those of the layer, or `eps` is below 0",
            use "nn::RmsNorm";
            "RmsNorm::<f32>::new(3).try_forward(&Tensor::ones([5, 4]))" => Shape
        {
            check_eps("RmsNorm", self.eps)?;
            let axes = last_axes("RmsNorm", x, &self.weight)?;
            if x.is_empty() {
                return Ok(x * &self.weight);
            }
            // The result does not depend on the scale, so the scale needs no gradient. It is at least the root
            // of `eps`, so that `eps` divided by its square is in range.
            let eps = self.eps.sqrt();
            let scale = scale_of(x, &axes, eps);
            let scaled = x / &scale;
            let eps = (eps / scale).square();
            Ok(&scaled * (scaled.square().mean_axes_keep(&axes) + eps).rsqrt() * &self.weight)
        }
    }
}

fn check_eps(op: &'static str, eps: f64) -> Result<()> {
    match eps >= 0.0 && eps.is_finite() {
        true => Ok(()),
        false => Err(Error::value(op, "eps", "0 or more, and finite", eps)),
    }
}

/// Returns the axes of a weight as axes of `x`, whose shape must end in that of the weight.
fn last_axes<T: Float>(op: &'static str, x: &Tensor<T>, weight: &Tensor<T>) -> Result<Vec<isize>> {
    let shape = weight.shape();
    if !x.shape().ends_with(shape) {
        return wrong_shape(op, x, format!("of a shape that ends in {shape:?}"));
    }
    Ok((1..=shape.len() as isize).map(|axis| -axis).collect())
}

pub(super) fn wrong_shape<T: Float, R>(
    op: &'static str,
    x: &Tensor<T>,
    expected: impl Into<String>,
) -> Result<R> {
    Err(Error::shape(op, "x", expected, x.shape()))
}

/// Batch normalization of signals `[n, channels]` or `[n, channels, length]`; see [`BatchNorm`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::BatchNorm1d;
///
/// let norm = BatchNorm1d::<f64>::new(2);
/// let y = norm.forward(&Tensor::from([[1.0, 5.0], [3.0, 5.0]]));
/// assert!((y.at(&[1, 0]) - 1.0).abs() < 1e-4 && y.at(&[1, 1]) == 0.0);
/// ```
pub type BatchNorm1d<T = f32> = BatchNorm<T, 1>;

/// Batch normalization of images: inputs are `[n, channels, height, width]`. See [`BatchNorm`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::BatchNorm2d;
///
/// let y = BatchNorm2d::<f64>::new(2).forward(&Tensor::randn([8, 2, 3, 3]));
/// let means = y.mean_axes([0, 2, 3]);
/// assert_eq!(means.shape(), [2]);
/// assert!(means.abs().max().item() < 1e-12);
/// ```
pub type BatchNorm2d<T = f32> = BatchNorm<T, 2>;

/// Normalization of each channel, with a learned scale and shift (Ioffe and Szegedy 2015):
/// `(x - mean) / sqrt(var + eps) * weight + bias`; as [`BatchNorm1d`] and [`BatchNorm2d`].
///
/// In training `mean` and `var` are those of the batch, and running averages of both are updated:
/// `running = (1 - momentum) running + momentum batch`, where the batch's variance divides by the number of
/// elements less one, as in PyTorch. (Paddle divides by the number, and its momentum is one minus ours.)
/// Evaluation uses the running averages. A [`checkpoint`](crate::checkpoint()) updates them once.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{BatchNorm2d, Module};
///
/// let norm = BatchNorm2d::<f64>::new(1).momentum(0.1).eps(1e-6);
/// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([1, 1, 2, 2]);
/// assert!(norm.forward(&x).mean().item().abs() < 1e-12);
/// assert_eq!(norm.running_mean.to_vec(), [0.25]);
/// norm.eval();
/// assert!(norm.forward(&x).mean().item() > 1.0);
/// ```
#[derive(Clone, Debug, Module)]
pub struct BatchNorm<T: Float, const AXES: usize> {
    /// The scale, `[channels]`; initially 1.
    pub weight: Tensor<T>,
    /// The shift, `[channels]`; initially 0.
    pub bias: Tensor<T>,
    /// The running average of the means, `[channels]`; initially 0.
    pub running_mean: Buffer<T>,
    /// The running average of the variances, `[channels]`; initially 1.
    pub running_var: Buffer<T>,
    /// The number of batches seen in training; a scalar.
    pub num_batches_tracked: Buffer<i64>,
    #[module(skip)]
    momentum: f64,
    #[module(skip)]
    eps: f64,
    mode: Mode,
}

impl<T: Float, const AXES: usize> BatchNorm<T, AXES> {
    const OP: &'static str = match AXES {
        1 => "BatchNorm1d",
        2 => "BatchNorm2d",
        _ => "BatchNorm",
    };

    /// Creates a layer for inputs with `channels` channels. `momentum` is 0.1 and `eps` 1e-5.
    ///
    /// ```
    /// use autograd_core::nn::BatchNorm1d;
    ///
    /// let norm = BatchNorm1d::<f32>::new(2);
    /// assert_eq!(norm.running_mean.to_vec(), [0.0, 0.0]);
    /// assert_eq!(norm.running_var.to_vec(), [1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn new(channels: usize) -> Self {
        Self {
            weight: init::ones(channels),
            bias: init::zeros(channels),
            running_mean: Buffer::new(Tensor::zeros(channels)),
            running_var: Buffer::new(Tensor::ones(channels)),
            num_batches_tracked: Buffer::new(Tensor::from(0)),
            momentum: 0.1,
            eps: 1e-5,
            mode: Mode::new(),
        }
    }

    options! {
        /// Sets the momentum: the weight of a new batch in the running averages.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::BatchNorm1d;
        ///
        /// let norm = BatchNorm1d::new(1).momentum(0.5);
        /// norm.forward(&Tensor::from([[1.0], [3.0]]));
        /// assert_eq!(norm.running_mean.to_vec(), [0.5 * 2.0]);
        /// ```
        pub fn momentum(momentum: f64);

        /// Sets `eps`, the number that is added under the root: 0 or more.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::BatchNorm1d;
        ///
        /// // The variance is 1.
        /// let y = BatchNorm1d::new(1).eps(3.0).forward(&Tensor::from([[1.0], [3.0]]));
        /// assert_eq!(y.to_vec(), [-0.5, 0.5]);
        /// ```
        pub fn eps(eps: f64);
    }

    pairs! {
        /// Normalizes `x`; the shape stays.
        ///
        /// ```
        /// use autograd_core::Tensor;
        /// use autograd_core::nn::{BatchNorm1d, Module};
        ///
        /// let (norm, x) = (BatchNorm1d::new(1).eps(0.0), Tensor::from([[1.0], [3.0]]));
        /// norm.eval();
        /// assert_eq!(norm.forward(&x).to_vec(), [1.0, 3.0]);
        /// norm.train();
        /// assert_eq!(norm.forward(&x).to_vec(), [-1.0, 1.0]);
        /// ```
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape | Value if
            "`x` has other axes or another number of channels than the layer, in training fewer than two \
            elements per channel, or an option is out of range",
            use "nn::BatchNorm1d";
            "BatchNorm1d::<f32>::new(2).try_forward(&Tensor::ones([1, 2]))" => Shape
        {
            let channels = self.weight.len();
            let wrong = |expected: String| wrong_shape(Self::OP, x, expected);
            let per_channel = match (AXES, x.shape()) {
                (1, [n, found]) | (1, [n, found, _]) | (2, [n, found, _, _]) if *found == channels => {
                    n * x.shape()[2..].iter().product::<usize>()
                }
                (1, _) => return wrong(format!("of shape [n, {channels}] or [n, {channels}, length]")),
                _ => return wrong(format!("of shape [n, {channels}, height, width]")),
            };
            for field in [
                ("bias", &self.bias),
                ("running_mean", &*self.running_mean),
                ("running_var", &*self.running_var),
            ] {
                check_field(Self::OP, &self.weight, field)?;
            }
            check_eps(Self::OP, self.eps)?;
            if !(0.0..=1.0).contains(&self.momentum) {
                return Err(Error::value(Self::OP, "momentum", "in [0, 1]", self.momentum));
            }
            let _composite = Composite::here(Self::OP);
            let affine = [&self.weight, &self.bias];
            if !self.mode.is_training() {
                let stats = [&*self.running_mean, &*self.running_var];
                return Ok(batch_norm::with_running_stats(x, affine, stats, self.eps));
            }
            if per_channel < 2 {
                return wrong("of at least two values per channel, for a variance".into());
            }
            let (y, batch) = batch_norm::with_batch_stats(x, affine, self.eps);
            if is_tracing() {
                let why = "in training it changes its running averages, which a traced closure cannot; call `eval()` first, \
                           or build the layer with `Program::batch_norm`";
                return Err(Error::Unsupported { op: Self::OP, why: why.into() });
            }
            if !is_recomputing() {
                self.collect(&batch, per_channel)?;
            }
            Ok(y)
        }
    }

    fn collect(&self, batch: &[Tensor<T>; 2], n: usize) -> Result<()> {
        let _off = no_grad();
        let running = [&*self.running_mean, &*self.running_var];
        let [mean, var] = batch_norm::new_stats(running, batch, self.momentum, n);
        self.running_mean.copy_from(&mean)?;
        self.running_var.copy_from(&var)?;
        self.num_batches_tracked.copy_from(&(&*self.num_batches_tracked + 1))
    }
}
