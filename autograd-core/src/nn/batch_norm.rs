//! Batch normalization.

use super::norm::{check_field, wrong_shape};
use super::{Buffer, Mode, Module, init};
use crate::engine::is_recomputing;
use crate::error::Result;
use crate::graph::{Tensor, no_grad};
use crate::ops::{Float, batch_norm, options, pairs};

/// Batch normalization of signals: inputs are `[n, channels]` or `[n, channels, length]`. See
/// [`BatchNorm`].
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
pub type BatchNorm2d<T = f32> = BatchNorm<T, 2>;

/// Normalization of each channel, with a learned scale and shift (Ioffe and Szegedy 2015):
/// `(x - mean) / sqrt(var + eps) * weight + bias`. It has two forms, [`BatchNorm1d`] and
/// [`BatchNorm2d`].
///
/// In training `mean` and `var` are those of the batch, and running averages of both are updated:
/// `running = (1 - momentum) running + momentum batch`, where the batch's variance divides by the
/// number of elements less one, as in PyTorch. (Paddle divides by the number, and its momentum is
/// one minus ours.) In evaluation the running averages are used. In a
/// [`checkpoint`](crate::checkpoint()), whose closure runs twice, they are updated once.
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
pub struct BatchNorm<T: Float, const AXES: usize> {
    /// The scale, `[channels]`; 1 at first.
    pub weight: Tensor<T>,
    /// The shift, `[channels]`; 0 at first.
    pub bias: Tensor<T>,
    /// The running average of the means, `[channels]`; 0 at first.
    pub running_mean: Buffer<T>,
    /// The running average of the variances, `[channels]`; 1 at first.
    pub running_var: Buffer<T>,
    /// How many batches were seen in training; a scalar.
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

    /// For inputs with `channels` channels. `momentum` is 0.1 and `eps` 1e-5.
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
        /// With another momentum: the weight of a new batch in the running averages.
        pub fn momentum(momentum: f64);

        /// With another `eps`.
        pub fn eps(eps: f64);
    }

    pairs! {
        /// `x` normalized.
        pub fn forward, try_forward(&self, x: &Tensor<T>) -> Tensor<T>, Shape if
            "`x` has other axes or another number of channels than the layer, or in training fewer than \
            two elements per channel"
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
            let affine = [&self.weight, &self.bias];
            if !self.mode.is_training() {
                let stats = [&*self.running_mean, &*self.running_var];
                return Ok(batch_norm::by_running(x, affine, stats, self.eps));
            }
            if per_channel < 2 {
                return wrong("of two or more numbers a channel, for a variance".into());
            }
            let (y, batch) = batch_norm::by_batch(x, affine, self.eps);
            if !is_recomputing() {
                self.collect(&batch, per_channel)?;
            }
            Ok(y)
        }
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
