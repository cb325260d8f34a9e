//! The public methods, options and reductions of losses.

use super::super::call::call;
use super::super::gather::check_indices;
use super::super::table::OpDef;
use super::super::{Float, HasMean, options, pairs};
use super::check_same_shape;
use super::loss::{CROSS_ENTROPY, check_places};
use super::pointwise::{
    OF_LOGITS, OF_LOGITS_EACH, OF_PROBABILITIES, OF_PROBABILITIES_EACH, SMOOTH_L1, SMOOTH_L1_EACH,
};
use crate::array::Shape;
use crate::error::{Error, Result};
use crate::graph::{Composite, Element, Tensor};

/// The reduction of the losses of the targets, as an argument of [`Tensor::mse_loss_with`].
///
/// ```
/// use autograd_core::{LossReduction, Tensor};
///
/// let (x, target) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::zeros([2, 2]));
/// let loss = |reduction| x.mse_loss_with(&target, reduction).to_vec();
/// assert_eq!(loss(LossReduction::None), [1.0, 4.0, 9.0, 16.0]);
/// assert_eq!(loss(LossReduction::Sum), [30.0]);
/// assert_eq!(loss(LossReduction::BatchMean), [15.0]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReduction {
    /// The mean. For losses of classes: the sum, divided by the sum of the class weights (1 by
    /// default) of the targets that are not ignored.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: one loss for each target, in the shape of the targets.
    None,
    /// The sum, divided by the length of the first axis; for a scalar, by 1.
    BatchMean,
}

impl LossReduction {
    #[track_caller]
    fn of<T: HasMean>(self, losses: Tensor<T>) -> Tensor<T> {
        match self {
            Self::Mean => losses.mean(),
            Self::Sum => losses.sum(),
            Self::None => losses,
            Self::BatchMean if losses.ndim() < 2 => losses.mean(),
            // Avoids the length itself, which differs between runs of a trace.
            Self::BatchMean => {
                losses.sum_axes((1..losses.ndim() as isize).collect::<Vec<_>>()).mean()
            }
        }
    }
}

/// Options of [`Tensor::cross_entropy_with`] and [`Tensor::nll_loss_with`].
///
/// ```
/// use autograd_core::{CrossEntropyOptions, LossReduction, Tensor};
///
/// let logits = Tensor::from([[2.0, 0.0], [0.0, 0.0]]);
/// let options = CrossEntropyOptions::new().ignore_index(-100).reduction(LossReduction::Sum);
/// let loss = logits.cross_entropy_with(&Tensor::from([-100, 1]), &options);
/// assert_eq!(loss.item(), 2_f64.ln());
/// ```
#[derive(Clone, Debug)]
pub struct CrossEntropyOptions<T: Float> {
    ignore_index: Option<i64>,
    weight: Option<Tensor<T>>,
    label_smoothing: f64,
    reduction: LossReduction,
}

impl<T: Float> Default for CrossEntropyOptions<T> {
    fn default() -> Self {
        let reduction = LossReduction::Mean;
        Self { ignore_index: None, weight: None, label_smoothing: 0.0, reduction }
    }
}

impl<T: Float> CrossEntropyOptions<T> {
    /// Creates options without ignored targets, class weights and smoothing, with [`LossReduction::Mean`].
    ///
    /// ```
    /// use autograd_core::{CrossEntropyOptions, Tensor};
    ///
    /// let (logits, class) = (Tensor::from([[1.0, 2.0]]), Tensor::from([0]));
    /// let loss = logits.cross_entropy_with(&class, &CrossEntropyOptions::new());
    /// assert!(loss.allclose(&logits.cross_entropy(&class), 1e-12, 0.0));
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// Targets equal to `index` have a loss of 0, their logits a gradient of 0. PyTorch's default is -100.
        ///
        /// ```
        /// use autograd_core::{CrossEntropyOptions, Tensor};
        ///
        /// let logs = Tensor::from([[-1.0, -2.0], [-3.0, -4.0]]);
        /// let options = CrossEntropyOptions::new().ignore_index(-100);
        /// assert_eq!(logs.nll_loss_with(&Tensor::from([-100, 1]), &options).item(), 4.0);
        /// ```
        pub fn ignore_index(index: i64).into();

        /// The part of targets spread evenly over all classes, in [0, 1] (Szegedy et al. 2016).
        ///
        /// ```
        /// use autograd_core::{CrossEntropyOptions, Tensor};
        ///
        /// let logs = Tensor::from([[-1.0, -3.0]]);
        /// let options = CrossEntropyOptions::new().label_smoothing(0.5);
        /// let loss = logs.nll_loss_with(&Tensor::from([0]), &options);
        /// assert_eq!(loss.item(), 0.5 * 1.0 + 0.5 * (1.0 + 3.0) / 2.0);
        /// ```
        pub fn label_smoothing(smoothing: f64);

        /// The reduction of the losses of the targets.
        ///
        /// ```
        /// use autograd_core::{CrossEntropyOptions, LossReduction, Tensor};
        ///
        /// let logs = Tensor::from([[-1.0, -2.0], [-3.0, -4.0]]);
        /// let options = CrossEntropyOptions::new().reduction(LossReduction::Sum);
        /// assert_eq!(logs.nll_loss_with(&Tensor::from([0, 1]), &options).item(), 1.0 + 4.0);
        /// ```
        pub fn reduction(reduction: LossReduction);
    }

    /// Sets a weight for each class, `[classes]`. The mean is the sum divided by the weights of the targets.
    ///
    /// ```
    /// use autograd_core::{CrossEntropyOptions, Tensor};
    ///
    /// let logs = Tensor::from([[-1.0, -2.0], [-3.0, -4.0]]);
    /// let options = CrossEntropyOptions::new().weight(&Tensor::from([1.0, 3.0]));
    /// let loss = logs.nll_loss_with(&Tensor::from([0, 1]), &options);
    /// assert_eq!(loss.item(), (1.0 * 1.0 + 3.0 * 4.0) / (1.0 + 3.0));
    /// ```
    #[must_use]
    pub fn weight(mut self, weight: &Tensor<T>) -> Self {
        self.weight = Some(weight.clone());
        self
    }
}

/// Returns the losses of classes. `logarithms` computes log-probabilities from the scores.
#[track_caller]
fn of_classes<T: HasMean>(
    op: &'static str,
    scores: &Tensor<T>,
    targets: &Tensor<i64>,
    options: &CrossEntropyOptions<T>,
    logarithms: impl FnOnce(&Tensor<T>) -> Tensor<T>,
) -> Result<Tensor<T>> {
    let _composite = Composite::here(op);
    check_places(op, scores.shape(), targets.shape())?;
    let (classes, smoothing) = (scores.shape()[1], options.label_smoothing);
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::value(op, "label_smoothing", "in [0, 1]", smoothing));
    }
    if let Some(weight) = &options.weight
        && weight.shape() != [classes]
    {
        let expected = format!("of shape [{classes}], a number for each class");
        return Err(Error::shape(op, "weight", expected, weight.shape()));
    }
    let ignored = options.ignore_index.map(|index| targets.eq_scalar(index));
    let chosen = ignored.as_ref().map_or(targets.clone(), |on| on.where_else(0_i64, targets));
    check_indices(op, "targets", &chosen.read(), classes)?;
    // The scores of ignored targets have a gradient of 0, even if they are infinite.
    let scores =
        ignored.as_ref().map_or(scores.clone(), |on| on.unsqueeze(1).where_else(T::ZERO, scores));
    let masked = |x: Tensor<T>| ignored.as_ref().map_or(x.clone(), |on| on.where_else(T::ZERO, &x));
    let logs = logarithms(&scores);
    let losses = -logs.gather(1, &chosen.unsqueeze(1)).squeeze(1);
    let weights = options.weight.as_ref().map(|weight| {
        let weights = weight.index_select(0, &chosen.flatten());
        masked(weights.reshape(Shape::from_slice(targets.shape())))
    });
    // Not in place: a trace refuses that.
    let mut losses = match &weights {
        Some(weights) => losses * weights,
        None => losses,
    };
    if smoothing > 0.0 {
        let others = match &options.weight {
            None => logs.sum_axes(1),
            Some(weight) => {
                let after: Vec<isize> = (1..logs.ndim() as isize - 1).collect();
                (logs * weight.unsqueeze_axes(&after)).sum_axes(1)
            }
        };
        losses = losses * (1.0 - smoothing) - others * (smoothing / classes as f64);
    }
    let losses = masked(losses);
    Ok(match (options.reduction, weights, &ignored) {
        (LossReduction::Mean, Some(weights), _) => losses.sum() / weights.sum(),
        (LossReduction::Mean, None, Some(on)) => losses.sum() / on.not().cast::<T>().sum(),
        (reduction, ..) => reduction.of(losses),
    })
}

/// Returns a loss of the table; its mean is an op of its own.
#[track_caller]
fn pointwise<T: HasMean>(
    [mean, each]: [&'static OpDef; 2],
    x: &Tensor<T>,
    target: &Tensor<T>,
    reduction: LossReduction,
) -> Result<Tensor<T>> {
    let inputs = [x.untyped(), target.untyped()];
    match reduction {
        LossReduction::Mean => call(mean, [], inputs),
        other => Ok(other.of(call(each, [], inputs)?)),
    }
}

/// # Losses of classes
///
/// Each returns a scalar, the mean over all predictions; NaN if there are none. Methods that end in
/// `_with` take other reductions.
impl<T: Element> Tensor<T> {
    pairs! {
        /// Returns the mean cross entropy of logits `[n, classes]` and the true class `t` of each row, `[n]`: the
        /// mean of `-ln(softmax(x)[t])`, without overflow. More axes may follow the classes; those of the
        /// targets then follow `n`. Options: [`Tensor::cross_entropy_with`].
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let logits = Tensor::from([[0.0, 0.0], [0.0, 0.0]]);
        /// logits.set_stop_gradient(false);
        /// let loss = logits.cross_entropy(&Tensor::from([0, 1]));
        /// assert_eq!(loss.item(), 2_f64.ln());
        /// loss.backward()?;
        /// assert_eq!(logits.grad().unwrap().to_vec(), [-0.25, 0.25, 0.25, -0.25]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        #[doc(alias = "CrossEntropyLoss")]
        pub fn cross_entropy, try_cross_entropy(&self, targets: &Tensor<i64>) -> Tensor<T>,
            Shape | Index if "this has fewer than two axes, `targets` has not one class for each row, \
            or one is outside `0..classes`",
            "Tensor::from([[0.0, 0.0]]).try_cross_entropy(&Tensor::from([2]))" => Index
            where T: HasMean
        {
            if self.ndim() <= 2 {
                return call(&CROSS_ENTROPY, [], [self.untyped(), targets.untyped()]);
            }
            check_places("cross_entropy", self.shape(), targets.shape())?;
            let order: Vec<isize> = [0].into_iter().chain(2..self.ndim() as isize).chain([1]).collect();
            let rows = self.permute(&order).reshape([targets.len(), self.shape()[1]]);
            call(&CROSS_ENTROPY, [], [rows.untyped(), targets.flatten().untyped()])
        }

        /// As [`Tensor::cross_entropy`], with the given options, for logits `[n, classes, ..]` and targets
        /// `[n, ..]`. A target `t` with weight `w` and smoothing `s` has the loss
        /// `-(1 - s) w[t] ln p[t] - s / classes * sum(w ln p)`, where `p` is the softmax of the logits: PyTorch's
        /// definition, with the smoothing of Szegedy et al. (2016).
        ///
        /// ```
        /// use autograd_core::{CrossEntropyOptions, Tensor};
        ///
        /// let logits = Tensor::from([[0.0, 0.0], [0.0, 0.0]]);
        /// let weight = Tensor::from([1.0, 3.0]);
        /// let options = CrossEntropyOptions::new().weight(&weight).label_smoothing(0.1);
        /// let loss = logits.cross_entropy_with(&Tensor::from([0, 1]), &options);
        /// assert!((loss.item() - 2_f64.ln()).abs() < 1e-15);
        /// ```
        pub fn cross_entropy_with, try_cross_entropy_with(
            &self,
            targets: &Tensor<i64>,
            options: &CrossEntropyOptions<T>,
        ) -> Tensor<T>, Shape | Index | Value if "shapes do not fit, a target that is not ignored is \
            outside `0..classes`, or the smoothing is not in [0, 1]",
            use "CrossEntropyOptions";
            "Tensor::from([[0.0]])\n    .try_cross_entropy_with(&Tensor::from([1]), &CrossEntropyOptions::new())"
                => Index
            where T: HasMean
        {
            of_classes("cross_entropy_with", self, targets, options, |x| x.log_softmax(1))
        }

        /// [`Tensor::cross_entropy`] of log-probabilities `x`, `[n, classes]`: the mean of `-x[t]`, with the true
        /// class `t` of each row.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let logits = Tensor::from([[1.0, 2.0, 3.0]]);
        /// let class = Tensor::from([2_i64]);
        /// let loss = logits.log_softmax(1).nll_loss(&class);
        /// assert!(loss.allclose(&logits.cross_entropy(&class), 1e-12, 0.0));
        /// ```
        pub fn nll_loss, try_nll_loss(&self, targets: &Tensor<i64>) -> Tensor<T>, Shape | Index if
            "this has fewer than two axes, `targets` has not one class for each row, or one is \
            outside `0..classes`",
            "Tensor::from([[0.0, 0.0]]).try_nll_loss(&Tensor::from([2]))" => Index
            where T: HasMean
        {
            of_classes("nll_loss", self, targets, &CrossEntropyOptions::new(), Tensor::clone)
        }

        /// As [`Tensor::nll_loss`], with the options of [`Tensor::cross_entropy_with`], for
        /// log-probabilities `[n, classes, ..]` and targets `[n, ..]`.
        ///
        /// ```
        /// use autograd_core::{CrossEntropyOptions, LossReduction, Tensor};
        ///
        /// let logs = Tensor::from([[-1.0, -2.0], [-3.0, -4.0]]);
        /// let options = CrossEntropyOptions::new().reduction(LossReduction::None);
        /// assert_eq!(logs.nll_loss_with(&Tensor::from([0, 1]), &options).to_vec(), [1.0, 4.0]);
        /// ```
        pub fn nll_loss_with, try_nll_loss_with(
            &self,
            targets: &Tensor<i64>,
            options: &CrossEntropyOptions<T>,
        ) -> Tensor<T>, Shape | Index | Value if "shapes do not fit, a target that is not ignored is \
            outside `0..classes`, or the smoothing is not in [0, 1]",
            use "CrossEntropyOptions";
            "Tensor::from([[0.0]])\n    .try_nll_loss_with(&Tensor::from([1]), &CrossEntropyOptions::new())" => Index
            where T: HasMean
        {
            of_classes("nll_loss_with", self, targets, options, Tensor::clone)
        }
    }
}

/// Defines losses, each as two pairs of methods: with its own reduction, and with a given one. An option's value
/// is for the examples.
macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident, $try_name:ident, $with:ident, $try_with:ident
            (&$self:ident, $target:ident: $type:ty $(, $option:ident: $of:ty = $value:literal)?;
                $reduction:ident = $own:ident)
            -> $output:ty, $error:ident $(| $more:ident)* if $when:literal where $bounded:ident: $bound:tt $body:block
    )*) => {
        pairs! {$(
            $(#[$doc])*
            pub fn $name, $try_name(&$self, $target: $type $(, $option: $of)?) -> $output,
                $error $(| $more)* if $when,
                concat!(
                    "Tensor::from([1.0, 2.0]).", stringify!($try_name), "(&Tensor::from([1.0])", $(", ", $value,)? ")"
                ) => Shape
                where $bounded: $bound
            {
                $self.$try_with($target $(, $option)?, LossReduction::$own)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with another reduction.")]
            ///
            /// ```
            /// use autograd_core::{LossReduction, Tensor};
            ///
            /// let (x, target) = (Tensor::from([[0.5], [0.25]]), Tensor::from([[1.0], [0.5]]));
            #[doc = concat!(
                "let losses = x.", stringify!($with), "(&target, ", $($value, ", ",)? "LossReduction::None);",
            )]
            #[doc = concat!("let mean = x.", stringify!($name), "(&target", $(", ", $value,)? ");")]
            /// assert_eq!(losses.shape(), [2, 1]);
            /// assert_eq!(losses.mean().item(), mean.item());
            /// ```
            pub fn $with, $try_with(&$self, $target: $type $(, $option: $of)?, $reduction: LossReduction)
                -> $output, $error $(| $more)* if $when,
                use "LossReduction";
                concat!(
                    "Tensor::from([1.0, 2.0])\n    .", stringify!($try_with), "(&Tensor::from([1.0])", $(", ", $value,)?
                    ", LossReduction::Sum)"
                ) => Shape
                where $bounded: $bound
            $body
        )*}
    };
}

/// # Losses of numbers
///
/// Each returns a scalar, the mean over all predictions except for `kl_div`; NaN if there are none.
/// Methods that end in `_with` take other reductions.
impl<T: Element> Tensor<T> {
    losses! {
        /// Returns the mean of `(x - target)²`, for a target of the same shape.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let loss = Tensor::from([1.0, 2.0]).mse_loss(&Tensor::from([1.0, 4.0]));
        /// assert_eq!(loss.item(), 2.0);
        /// ```
        pub fn mse_loss, try_mse_loss, mse_loss_with, try_mse_loss_with(
            &self, target: &Tensor<T>; reduction = Mean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            check_same_shape("mse_loss", self.shape(), "target", target.shape())?;
            Ok(reduction.of((self - target).square()))
        }

        /// Returns the mean of `|x - target|`, for a target of the same shape. At a difference of 0 the gradient
        /// is 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// assert_eq!(Tensor::from([1.0, 5.0]).l1_loss(&Tensor::from([2.0, 2.0])).item(), 2.0);
        /// ```
        #[doc(alias = "mae_loss")]
        #[doc(alias = "mean_absolute_error")]
        pub fn l1_loss, try_l1_loss, l1_loss_with, try_l1_loss_with(
            &self, target: &Tensor<T>; reduction = Mean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            check_same_shape("l1_loss", self.shape(), "target", target.shape())?;
            Ok(reduction.of((self - target).abs()))
        }

        /// Returns the mean of `d² / 2` where the difference `d` has `|d| < 1`, else of `|d| - 1 / 2`
        /// (Girshick 2015).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let loss = Tensor::from([0.5, 3.0]).smooth_l1_loss(&Tensor::from([0.0, 0.0]));
        /// assert_eq!(loss.item(), (0.125 + 2.5) / 2.0);
        /// ```
        pub fn smooth_l1_loss, try_smooth_l1_loss, smooth_l1_loss_with, try_smooth_l1_loss_with(
            &self, target: &Tensor<T>; reduction = Mean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            pointwise([&SMOOTH_L1, &SMOOTH_L1_EACH], self, target, reduction)
        }

        /// Returns the mean of `d² / 2` where the difference `d` has `|d| <= delta`, else of
        /// `delta * (|d| - delta / 2)` (Huber 1964). A `delta` of 1 gives [`Tensor::smooth_l1_loss`].
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let loss = Tensor::from([1.0, 5.0]).huber_loss(&Tensor::from([0.0, 0.0]), 2.0);
        /// assert_eq!(loss.item(), (0.5 + 8.0) / 2.0);
        /// ```
        pub fn huber_loss, try_huber_loss, huber_loss_with, try_huber_loss_with(
            &self, target: &Tensor<T>, delta: f64 = 1.0; reduction = Mean
        ) -> Tensor<T>, Shape | Value if
            "the shapes differ (nothing is broadcast), or `delta` is not a finite number above 0"
            where T: HasMean
        {
            check_same_shape("huber_loss", self.shape(), "target", target.shape())?;
            if !(delta > 0.0 && delta < f64::INFINITY) {
                return Err(Error::value("huber_loss", "delta", "a finite number above 0", delta));
            }
            // Computed without `|d|`, which has no second derivative at 0.
            let difference = self - target;
            let near = difference.clamp(-delta, delta);
            Ok(reduction.of(&near * (difference - &near * 0.5)))
        }

        /// Returns the divergence of Kullback and Leibler (1951) of the probabilities `target` from those whose
        /// logarithms `x` this tensor holds: `sum(target (ln(target) - x)) / n` with the length `n` of the first
        /// axis, as PyTorch's with `reduction="batchmean"`. A target of 0 adds 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (p, q) = (Tensor::from([[0.5, 0.5]]), Tensor::from([[1.0, 0.0]]));
        /// assert_eq!(p.ln().kl_div(&q).item(), 2_f64.ln());
        /// ```
        #[doc(alias = "kl_divergence")]
        #[doc(alias = "KLDivLoss")]
        pub fn kl_div, try_kl_div, kl_div_with, try_kl_div_with(
            &self, target: &Tensor<T>; reduction = BatchMean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            check_same_shape("kl_div", self.shape(), "target", target.shape())?;
            let none = target.eq_scalar(T::ZERO);
            // Both operands are replaced, so that neither has an infinite slope there.
            let logarithms = none.where_else(T::ONE, target).ln() - none.where_else(T::ZERO, self);
            Ok(reduction.of(target * logarithms))
        }

        /// Returns the mean of `-t ln(x) - (1 - t) ln(1 - x)` over probabilities `x`, this tensor, and
        /// targets `t` in [0, 1] of the same shape. Logarithms are at least -100, as in PyTorch. Other
        /// probabilities are no error: the loss is NaN or negative.
        /// [`Tensor::binary_cross_entropy_with_logits`] is more accurate.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let loss = Tensor::from([0.5, 1.0]).binary_cross_entropy(&Tensor::from([1.0, 1.0]));
        /// assert_eq!(loss.item(), 2_f64.ln() / 2.0);
        /// ```
        #[doc(alias = "bce_loss")]
        pub fn binary_cross_entropy, try_binary_cross_entropy,
            binary_cross_entropy_with, try_binary_cross_entropy_with(
            &self, targets: &Tensor<T>; reduction = Mean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            pointwise([&OF_PROBABILITIES, &OF_PROBABILITIES_EACH], self, targets, reduction)
        }

        /// Returns the mean of `ln(1 + exp(x)) - t x` over logits `x`, this tensor, and target probabilities `t`
        /// of the same shape, without overflow: [`Tensor::binary_cross_entropy`] of `sigmoid(x)`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let loss = Tensor::from([0.0, 40.0]).binary_cross_entropy_with_logits(&Tensor::from([1.0, 1.0]));
        /// assert!((loss.item() - 2_f64.ln() / 2.0).abs() < 1e-15);
        /// ```
        #[doc(alias = "BCEWithLogitsLoss")]
        pub fn binary_cross_entropy_with_logits, try_binary_cross_entropy_with_logits,
            binary_cross_entropy_with_logits_with, try_binary_cross_entropy_with_logits_with(
            &self, targets: &Tensor<T>; reduction = Mean
        ) -> Tensor<T>, Shape if "the shapes differ (nothing is broadcast)" where T: HasMean {
            pointwise([&OF_LOGITS, &OF_LOGITS_EACH], self, targets, reduction)
        }
    }
}
