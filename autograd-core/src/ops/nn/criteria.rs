//! Losses with options, of distances and of distributions: made of other ops, but for one fused formula.

use std::borrow::Cow;

use super::super::call::call;
use super::super::elementwise::{Handle, Info, Pair, Reduction};
use super::super::index::check_indices;
use super::super::table::values::float;
use super::super::table::{OpDef, entries};
use super::super::{Float, HasMean, expect};
use super::check_same_shape;
use super::loss::{check_places, of_pair, paired};
use crate::array::Shape;
use crate::error::{Error, Result};
use crate::formula::{Compiled, Lane, Lanewise, Mask, Program, Real};
use crate::graph::{Element, Tensor};

entries! {
    CRITERIA:

    BINARY_CROSS_ENTROPY_OF_PROBABILITIES = OpDef {
        infer: of_pair,
        run: |_, values, at| float!(values, (x, targets) => {
            paired(&binary_cross_entropy(), &x, ("targets", &targets), at)
        }),
        ..OpDef::new("binary_cross_entropy")
    };
}

/// The mean cross entropy of two probabilities: `-t ln(x) - (1 - t) ln(1 - x)`, where a logarithm is at least
/// -100, as in PyTorch. A term with a factor of 0 is 0, also where its logarithm is infinite.
fn binary_cross_entropy<T: Float>() -> Handle<T> {
    /// Of the numbers that two targets weigh.
    #[inline(always)]
    fn logarithms<L: Lane>(x: Real<L>) -> [Real<L>; 2] {
        [x.ln().max(-100.0), (-x).ln_1p().max(-100.0)]
    }

    struct Forward;
    struct Backward;

    impl Lanewise<2, 0, 1> for Forward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, t]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
            let [yes, no] = logarithms(x);
            let yes = t.eq(0.0).select(0.0, t * yes);
            let no = t.eq(1.0).select(0.0, (1.0 - t) * no);
            [-(yes + no)]
        }
    }

    impl Lanewise<3, 0, 2> for Backward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, t, dy]: [Real<L>; 3], _: [Mask<L>; 0]) -> [Real<L>; 2] {
            let [yes, no] = logarithms(x);
            [dy * ((x - t) / (x * (1.0 - x)).max(1e-12)), dy * (no - yes)]
        }
    }

    static INFO: Info = Info {
        reals: Cow::Borrowed(&["self", "targets"]),
        name: "binary_cross_entropy",
        differentiable: Cow::Borrowed(&[true, true]),
        masks: Cow::Borrowed(&[]),
        outputs: 1,
        keeps_reals: Cow::Borrowed(&[0, 1]),
        keeps_masks: Cow::Borrowed(&[]),
        keeps_outputs: Cow::Borrowed(&[]),
        gradients: Cow::Borrowed(&[0]),
        reduction: Reduction::Mean(Cow::Borrowed(&[])),
    };
    static OP: Pair<Compiled<Forward, 2, 0, 1>, Compiled<Backward, 3, 0, 2>, Program> =
        Pair::new(&INFO, Compiled(Forward), Compiled(Backward), None);
    Handle::Static(&OP)
}

/// How the losses of the single targets are reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReduction {
    /// Their sum, divided by the sum of the class weights (1 without any) of targets not ignored.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// No reduction: one loss for each target, in the shape of the targets.
    None,
}

/// Options of [`Tensor::cross_entropy_with`].
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
    /// No ignored targets, no class weights, no label smoothing, and [`LossReduction::Mean`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Targets equal to `index` have a loss of 0, and their logits a gradient of 0. PyTorch's default is -100.
    #[must_use]
    pub fn ignore_index(mut self, index: i64) -> Self {
        self.ignore_index = Some(index);
        self
    }

    /// A weight for each class, `[classes]`. The mean is the sum divided by the weights of the targets.
    #[must_use]
    pub fn weight(mut self, weight: &Tensor<T>) -> Self {
        self.weight = Some(weight.clone());
        self
    }

    /// The part of each target that is distributed evenly over all classes, in [0, 1] (Szegedy et al. 2016).
    #[must_use]
    pub fn label_smoothing(mut self, smoothing: f64) -> Self {
        self.label_smoothing = smoothing;
        self
    }

    /// How the losses of the single targets are reduced.
    #[must_use]
    pub fn reduction(mut self, reduction: LossReduction) -> Self {
        self.reduction = reduction;
        self
    }
}

#[track_caller]
fn cross_entropy<T: Float>(
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
    options: &CrossEntropyOptions<T>,
) -> Result<Tensor<T>> {
    let op = "cross_entropy_with";
    check_places(op, logits.shape(), targets.shape())?;
    let (classes, smoothing) = (logits.shape()[1], options.label_smoothing);
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(Error::Value {
            op,
            parameter: "label_smoothing",
            expected: "in [0, 1]".into(),
            found: smoothing.to_string(),
        });
    }
    if let Some(weight) = &options.weight
        && weight.shape() != [classes]
    {
        return Err(Error::Shape {
            op,
            parameter: "weight".into(),
            expected: format!("of shape [{classes}], a number for each class"),
            found: weight.shape().to_vec(),
        });
    }
    let ignored = options.ignore_index.map(|index| targets.eq_scalar(index));
    let chosen = ignored.as_ref().map_or(targets.clone(), |on| on.where_else(0_i64, targets));
    check_indices(op, "targets", &chosen.read(), classes)?;
    // What is ignored has a gradient of 0 also beside infinite logits.
    let logits =
        ignored.as_ref().map_or(logits.clone(), |on| on.unsqueeze(1).where_else(T::ZERO, logits));
    let heard = |x: Tensor<T>| ignored.as_ref().map_or(x.clone(), |on| on.where_else(T::ZERO, &x));
    let logs = logits.log_softmax(1);
    let losses = -logs.gather(1, &chosen.unsqueeze(1)).squeeze(1);
    let weights = options.weight.as_ref().map(|weight| {
        let weights = weight.index_select(0, &chosen.flatten());
        heard(weights.reshape(Shape::from_slice(targets.shape())))
    });
    // Not in place, which a trace refuses.
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
    let losses = heard(losses);
    Ok(match options.reduction {
        LossReduction::None => losses,
        LossReduction::Sum => losses.sum(),
        LossReduction::Mean => {
            let counted = match (weights, &ignored) {
                (Some(weights), _) => weights.sum(),
                (None, Some(on)) => on.not().cast::<T>().sum(),
                (None, None) => return Ok(losses.mean()),
            };
            losses.sum() / counted
        }
    })
}

/// # Losses with options, of distances and of distributions
impl<T: Element> Tensor<T> {
    /// [`Tensor::cross_entropy`] with an ignored index, class weights, label smoothing and other reductions,
    /// of logits `[n, classes, ..]` and targets `[n, ..]`. For a target `t` with weight `w` and smoothing `s`, the
    /// loss is `-(1 - s) w[t] ln p[t] - s / classes * sum(w ln p)`, where `p` is the softmax of the logits.
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
    ///
    /// A mean of no targets is NaN.
    ///
    /// # Panics
    ///
    /// If shapes do not fit, a target that is not ignored is outside `0..classes`, or the smoothing is not in
    /// [0, 1]; see
    /// [`Tensor::try_cross_entropy_with`].
    #[track_caller]
    pub fn cross_entropy_with(
        &self,
        targets: &Tensor<i64>,
        options: &CrossEntropyOptions<T>,
    ) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(cross_entropy(self, targets, options))
    }

    /// [`Tensor::cross_entropy_with`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Index`], or [`Error::Value`] if the smoothing is not in [0, 1].
    #[track_caller]
    pub fn try_cross_entropy_with(
        &self,
        targets: &Tensor<i64>,
        options: &CrossEntropyOptions<T>,
    ) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        cross_entropy(self, targets, options)
    }

    /// The mean of the absolute differences. At a difference of 0 the gradient is 0.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0, 5.0]).l1_loss(&Tensor::from([2.0, 2.0])).item(), 2.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ (nothing is broadcast).
    #[doc(alias = "mae_loss")]
    #[doc(alias = "mean_absolute_error")]
    #[track_caller]
    pub fn l1_loss(&self, target: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(check_same_shape("l1_loss", self.shape(), "target", target.shape()));
        (self - target).abs().mean()
    }

    /// The mean of `d² / 2` where the difference `d` has `|d| <= delta`, and of `delta * (|d| - delta / 2)`
    /// elsewhere (Huber 1964). For a `delta` of 1 it is [`Tensor::smooth_l1_loss`].
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let loss = Tensor::from([1.0, 5.0]).huber_loss(&Tensor::from([0.0, 0.0]), 2.0);
    /// assert_eq!(loss.item(), (0.5 + 8.0) / 2.0);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ (nothing is broadcast), or `delta` is not a finite number above 0.
    #[track_caller]
    pub fn huber_loss(&self, target: &Tensor<T>, delta: f64) -> Tensor<T>
    where
        T: HasMean,
    {
        let op = "huber_loss";
        expect(check_same_shape(op, self.shape(), "target", target.shape()));
        if !(delta > 0.0 && delta < f64::INFINITY) {
            let (expected, found) = ("a finite number above 0".into(), delta.to_string());
            expect(Err(Error::Value { op, parameter: "delta", expected, found }))
        }
        // Without `|d|`, which has no second derivative at 0.
        let difference = self - target;
        let near = difference.clamp(-delta, delta);
        (&near * (difference - &near * 0.5)).mean()
    }

    /// The Kullback-Leibler divergence of probabilities `target` from probabilities of which this tensor has the
    /// logarithms: the sum of `target * (ln(target) - self)`, divided by the length of the first axis. A
    /// target of 0 adds 0.
    ///
    /// It is PyTorch's `kl_div` with `reduction="batchmean"`: the mean over rows that are distributions.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let (p, q) = (Tensor::from([[0.5, 0.5]]), Tensor::from([[1.0, 0.0]]));
    /// assert_eq!(p.ln().kl_div(&q).item(), 2_f64.ln());
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ (nothing is broadcast).
    #[doc(alias = "kl_divergence")]
    #[track_caller]
    pub fn kl_div(&self, target: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(check_same_shape("kl_div", self.shape(), "target", target.shape()));
        let none = target.eq_scalar(T::ZERO);
        let each = target * (none.where_else(T::ONE, target).ln() - self);
        none.where_else(T::ZERO, &each).sum() / self.shape().first().map_or(1.0, |&n| n as f64)
    }

    /// The mean of `-t ln(x) - (1 - t) ln(1 - x)` over probabilities `x`, this tensor, and targets `t` in [0, 1] of
    /// the same shape. Logarithms are at least -100, as in PyTorch. A probability outside of [0, 1] is no
    /// error: its loss is NaN, or negative for a probability below 0 with target 0 or above 1 with target 1.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let loss = Tensor::from([0.5, 1.0]).binary_cross_entropy(&Tensor::from([1.0, 1.0]));
    /// assert_eq!(loss.item(), 2_f64.ln() / 2.0);
    /// ```
    ///
    /// [`Tensor::binary_cross_entropy_with_logits`] after a linear layer is more accurate.
    ///
    /// # Panics
    ///
    /// If the shapes differ.
    #[doc(alias = "bce_loss")]
    #[track_caller]
    pub fn binary_cross_entropy(&self, targets: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        let inputs = [self.untyped(), targets.untyped()];
        expect(call(&BINARY_CROSS_ENTROPY_OF_PROBABILITIES, [], inputs))
    }
}
