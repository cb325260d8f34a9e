//! Layers that normalise, and dropout.

use std::panic::Location;

use super::{Buffer, Mode, Module, init};
use crate::array::IntoShape;
use crate::engine::is_recomputing;
use crate::error::{Error, Result};
use crate::graph::{Tensor, no_grad};
use crate::ops::{Float, batch_norm, expect, layer_norm};

/// An error unless a field of a layer is as long as `weight`, or one number for all of it.
fn check_field<T: Float>(
    op: &'static str,
    weight: &Tensor<T>,
    (name, field): (&str, &Tensor<T>),
) -> Result<()> {
    if field.len() == weight.len() || field.len() == 1 {
        return Ok(());
    }
    Err(Error::Shape {
        op,
        parameter: name.into(),
        expected: format!("of shape {:?}, as `weight` is", weight.shape()),
        found: field.shape().to_vec(),
    })
}

/// In training, zeros with probability `p` and scales the rest by `1 / (1 - p)`; else passes
/// everything (Srivastava et al. 2014). See [`Tensor::dropout`].
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{Dropout, Module};
///
/// let dropout = Dropout::new(0.5);
/// let x = Tensor::<f32>::ones([1000]);
/// assert!(dropout.forward(&x).to_vec().contains(&0.0));
/// dropout.eval();
/// assert_eq!(dropout.forward(&x).to_vec(), x.to_vec());
/// ```
#[derive(Clone, Debug, Module)]
pub struct Dropout {
    #[module(skip)]
    p: f64,
    mode: Mode,
}

impl Dropout {
    /// Drops with this probability.
    ///
    /// # Panics
    ///
    /// If `p` is not in [0, 1].
    #[track_caller]
    pub fn new(p: f64) -> Self {
        assert!((0.0..=1.0).contains(&p), "Dropout: `p` must be a probability, found {p}");
        Self { p, mode: Mode::new() }
    }

    /// What is left of `x`.
    #[track_caller]
    pub fn forward<T: Float>(&self, x: &Tensor<T>) -> Tensor<T> {
        x.dropout(self.p, self.mode.is_training())
    }
}

/// Normalisation over the last axes of each sample, with a learned scale and shift (Ba et al.
/// 2016): `(x - mean) / sqrt(var + eps) * weight + bias`, where `var` divides by the number of
/// elements.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::LayerNorm;
///
/// let norm = LayerNorm::<f64>::new(2);
/// let y = norm.forward(&Tensor::from([[1.0, 3.0], [10.0, 30.0]]));
/// assert!((y.at(&[0, 1]) - 1.0).abs() < 1e-4 && (y.at(&[1, 0]) + 1.0).abs() < 1e-4);
/// ```
#[derive(Clone, Debug, Module)]
pub struct LayerNorm<T: Float = f32> {
    /// The scale, of the shape that is normalised; 1 at first.
    pub weight: Tensor<T>,
    /// The shift, of the shape that is normalised; 0 at first.
    pub bias: Tensor<T>,
    #[module(skip)]
    eps: f64,
}

impl<T: Float> LayerNorm<T> {
    /// For inputs whose last axes are `shape`. `eps` is 1e-5.
    ///
    /// # Panics
    ///
    /// If the shape has no axis.
    #[track_caller]
    pub fn new(shape: impl IntoShape) -> Self {
        let weight = init::ones(shape);
        assert!(weight.ndim() > 0, "LayerNorm: there must be an axis to normalise over");
        let bias = init::zeros(weight.shape());
        Self { weight, bias, eps: 1e-5 }
    }

    /// With another `eps`.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Self { eps, ..self }
    }

    /// `x` normalised.
    ///
    /// # Panics
    ///
    /// If the last axes of `x` are not those of the layer; see [`LayerNorm::try_forward`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        expect(self.try_forward(x))
    }

    /// [`LayerNorm::forward`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the last axes of `x` are not those of the layer.
    #[track_caller]
    pub fn try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let shape = self.weight.shape();
        if !x.shape().ends_with(shape) {
            return Err(Error::Shape {
                op: "LayerNorm",
                parameter: "x".into(),
                expected: format!("of a shape that ends in {shape:?}"),
                found: x.shape().to_vec(),
            });
        }
        let axes: Vec<isize> = (1..=shape.len() as isize).map(|axis| -axis).collect();
        let weights = Some([&self.weight, &self.bias]);
        let y = layer_norm(x, weights, &axes, self.eps, Location::caller());
        y.map_err(|error| error.of_layer("LayerNorm"))
    }
}

/// Normalisation of each channel of pictures `[n, channels, height, width]`, with a learned scale
/// and shift (Ioffe and Szegedy 2015): `(x - mean) / sqrt(var + eps) * weight + bias`.
///
/// In training `mean` and `var` are those of the batch, and running means of both are collected:
/// `running = (1 - momentum) running + momentum batch`, where the batch's variance divides by the
/// number of elements less one, as in PyTorch. (Paddle divides by the number, and its momentum is
/// one less ours.) Else the running means are used. In a [`checkpoint`](crate::checkpoint()), whose
/// closure runs twice, a batch is collected once.
///
/// ```
/// use autograd_core::Tensor;
/// use autograd_core::nn::{BatchNorm2d, Module};
///
/// let norm = BatchNorm2d::<f64>::new(1);
/// let x = Tensor::from(vec![1.0, 2.0, 3.0, 4.0]).reshape([1, 1, 2, 2]);
/// assert!(norm.forward(&x).mean().item().abs() < 1e-12);
/// assert_eq!(norm.running_mean.to_vec(), [0.25]);
/// norm.eval();
/// assert!(norm.forward(&x).mean().item() > 1.0);
/// ```
#[derive(Clone, Debug, Module)]
pub struct BatchNorm2d<T: Float = f32> {
    /// The scale, `[channels]`; 1 at first.
    pub weight: Tensor<T>,
    /// The shift, `[channels]`; 0 at first.
    pub bias: Tensor<T>,
    /// `[channels]`; 0 at first.
    pub running_mean: Buffer<T>,
    /// `[channels]`; 1 at first.
    pub running_var: Buffer<T>,
    /// How many batches were seen in training; a scalar.
    pub num_batches_tracked: Buffer<i64>,
    #[module(skip)]
    momentum: f64,
    #[module(skip)]
    eps: f64,
    mode: Mode,
}

impl<T: Float> BatchNorm2d<T> {
    /// For pictures of so many channels. `momentum` is 0.1 and `eps` 1e-5.
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

    /// With another momentum: the part that a new batch has in the running means.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Self { momentum, ..self }
    }

    /// With another `eps`.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        Self { eps, ..self }
    }

    /// `x` normalised.
    ///
    /// # Panics
    ///
    /// If `x` is not `[n, channels, height, width]`, or in training has fewer than two numbers a
    /// channel; see [`BatchNorm2d::try_forward`].
    #[track_caller]
    pub fn forward(&self, x: &Tensor<T>) -> Tensor<T> {
        expect(self.try_forward(x))
    }

    /// [`BatchNorm2d::forward`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if `x` is not `[n, channels, height, width]`, or in training has fewer than
    /// two numbers a channel.
    #[track_caller]
    pub fn try_forward(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let channels = self.weight.len();
        let wrong = |expected: String| Error::Shape {
            op: "BatchNorm2d",
            parameter: "x".into(),
            expected,
            found: x.shape().to_vec(),
        };
        let per_channel = match *x.shape() {
            [n, found, height, width] if found == channels => n * height * width,
            _ => return Err(wrong(format!("of shape [n, {channels}, height, width]"))),
        };
        for field in [
            ("bias", &self.bias),
            ("running_mean", &*self.running_mean),
            ("running_var", &*self.running_var),
        ] {
            check_field("BatchNorm2d", &self.weight, field)?;
        }
        let affine = [&self.weight, &self.bias];
        if !self.mode.is_training() {
            let stats = [&*self.running_mean, &*self.running_var];
            return Ok(batch_norm::by_running(x, affine, stats, self.eps));
        }
        if per_channel < 2 {
            return Err(wrong("of two or more numbers a channel, for a variance".into()));
        }
        let (y, batch) = batch_norm::by_batch(x, affine, self.eps);
        if !is_recomputing() {
            self.collect(&batch, per_channel)?;
        }
        Ok(y)
    }

    fn collect(&self, batch: &[Tensor<T>; 2], n: usize) -> Result<()> {
        let _off = no_grad();
        let running = [&*self.running_mean, &*self.running_var];
        let [mean, var] = batch_norm::mixed(running, batch, self.momentum, n);
        self.running_mean.copy_from(&mean)?;
        self.running_var.copy_from(&var)?;
        self.num_batches_tracked.copy_from(&(&*self.num_batches_tracked + 1))
    }
}
