//! Losses: one number from predictions and what they should have been, the mean over all.

use std::sync::Arc;

use smallvec::smallvec;

use super::super::call::call;
use super::super::elementwise::{Handle, only};
use super::super::index::check_indices;
use super::super::table::form::{Dims, Form};
use super::super::table::forms::{exactly, float as float_form};
use super::super::table::values::{float, several};
use super::super::table::{Inferred, OpDef, Operator, entries};
use super::super::{Caller, Float, HasMean, derived, expect};
use super::{check_same_shape, kernels};
use crate::array::{DType, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{
    AnyTensor, Element, Hidden, SavedInput, Tensor, is_grad_enabled, record, unrecorded,
};

/// An error unless `targets` names one of the columns for each row of a matrix.
fn check_targets(op: &'static str, scores: &[usize], targets: &Tensor<i64>) -> Result<usize> {
    let &[n, classes] = scores else {
        return Err(Error::Shape {
            op,
            parameter: RECEIVER.into(),
            expected: "a matrix [n, classes]".into(),
            found: scores.to_vec(),
        });
    };
    if targets.shape() != [n] {
        return Err(Error::Shape {
            op,
            parameter: "targets".into(),
            expected: format!("of shape {:?}, one class for each of the {n} rows", [n]),
            found: targets.shape().to_vec(),
        });
    }
    check_indices(op, "targets", &targets.read(), classes)?;
    Ok(classes)
}

/// An error unless there is a target for each place of the logits `[n, classes, ..]`.
pub(super) fn check_places(op: &'static str, logits: &[usize], targets: &[usize]) -> Result<()> {
    let shape = |parameter: &str, expected, found: &[usize]| {
        let found = found.to_vec();
        Err(Error::Shape { op, parameter: parameter.into(), expected, found })
    };
    let [n, _, rest @ ..] = logits else {
        return shape(RECEIVER, "of shape [n, classes] or [n, classes, ..]".into(), logits);
    };
    let places = [&[*n], rest].concat();
    if places == targets {
        return Ok(());
    }
    let expected = format!("of shape {places:?}, that of the logits without their axis 1");
    shape("targets", expected, targets)
}

entries! {
    LOSSES:

    /// Mean cross entropy of logits and classes.
    CROSS_ENTROPY = OpDef {
        infer: |_, inputs| of_logits(inputs),
        run: |_, values, at| match several(values)? {
            [logits, AnyTensor::Int64(classes)] => {
                float!(smallvec![logits], x => cross_entropy(&x, &classes, at))
            }
            _ => Err("its classes must be int64".into()),
        },
        ..OpDef::new("cross_entropy")
    };

    SMOOTH_L1 = OpDef {
        infer: of_pair,
        run: |_, values, at| float!(values, (x, target) => {
            paired(&derived::smooth_l1_loss(), &x, ("target", &target), at)
        }),
        ..OpDef::new("smooth_l1_loss")
    };

    BINARY_CROSS_ENTROPY = OpDef {
        infer: of_pair,
        run: |_, values, at| float!(values, (x, targets) => {
            paired(&derived::binary_cross_entropy(), &x, ("targets", &targets), at)
        }),
        ..OpDef::new("binary_cross_entropy_with_logits")
    };
}

pub(crate) fn of_logits(inputs: &[&Form]) -> Inferred {
    let [logits, targets] = exactly(inputs)?;
    float_form(logits)?;
    if targets.dtype != DType::Int64 {
        return Err(format!("its classes must be int64, found {}", targets.dtype));
    }
    let ([rows, _], [count]) = (&logits.dims[..], &targets.dims[..]) else {
        return Err("takes logits [n, classes] and n classes".to_owned());
    };
    match (rows, count) {
        (Some(rows), Some(count)) if rows != count => {
            Err(format!("{rows} rows of logits need as many classes, found {count}"))
        }
        _ => Ok(vec![Form::new(logits.dtype, Dims::new())]),
    }
}

fn cross_entropy<T: Float>(
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
    caller: Caller,
) -> Result<Tensor<T>> {
    let (loss, sums) = mean_cross_entropy(logits, targets)?;
    let loss = Value::scalar(loss);
    if !logits.is_recorded() {
        return Ok(unrecorded("cross_entropy", caller, [logits], loss).and_lost(targets));
    }
    // The probabilities are computed again in backward: that costs no memory until then.
    let state = (SavedInput::at(0, logits), SavedInput::at(1, targets), Hidden(Arc::new(sums)));
    Ok(record("cross_entropy", caller, [logits], loss, state, pull_cross_entropy))
}

/// The loss, and the logarithms of the sums of each row's exponentials, which its gradient reads.
fn mean_cross_entropy<T: Float>(
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
) -> Result<(T, Value<T>)> {
    let classes = check_targets("cross_entropy", logits.shape(), targets)?;
    let (logits, targets) = (logits.read(), targets.read());
    let (logits, targets) = (logits.contiguous(), targets.contiguous());
    let rows = logits.as_slice().unwrap_or(&[]);
    let targets = targets.as_slice().unwrap_or(&[]);
    let shape = Shape::from_slice(&[targets.len()]);
    let sums = Value::written(shape, |sums| kernels::log_sum_exp(rows, classes, sums));
    let at = |(row, &target): (usize, &i64)| rows[row * classes + target as usize];
    let losses = targets.iter().enumerate().map(at).zip(sums.as_slice().unwrap_or(&[]));
    let total: f64 = losses.map(|(x, &sum)| (sum - x).into_f64()).sum();
    Ok((T::from_f64(total / targets.len() as f64), sums))
}

/// `dx = (softmax(x) - one_hot(targets)) dy / n`, with the sums of [`mean_cross_entropy`].
fn cross_entropy_gradient<T: Float>(
    (logits, targets): (&Tensor<T>, &Tensor<i64>),
    sums: &Value<T>,
    dy: T,
) -> Value<T> {
    let (logits, targets) = (logits.read(), targets.read());
    let (logits, targets) = (logits.contiguous(), targets.contiguous());
    let scale = T::from_f64(dy.into_f64() / sums.len() as f64);
    let classes = logits.shape()[1];
    Value::written(Shape::from_slice(logits.shape()), |rows| {
        rows.copy_from_slice(logits.as_slice().unwrap_or(&[]));
        kernels::softmax_scaled(rows, sums.as_slice().unwrap_or(&[]), classes, scale);
        for (row, &target) in targets.as_slice().unwrap_or(&[]).iter().enumerate() {
            let hit = &mut rows[row * classes + target as usize];
            *hit = *hit - scale;
        }
    })
}

fn pull_cross_entropy<T: Float>(
    (logits, targets, sums): (Tensor<T>, Tensor<i64>, Arc<Value<T>>),
    dy: Tensor<T>,
    _: [bool; 1],
) -> Result<[Option<Tensor<T>>; 1]> {
    if is_grad_enabled() {
        let off = logits.softmax(1) - targets.one_hot::<T>(logits.shape()[1]);
        return Ok([Some(off * (dy / sums.len() as f64))]);
    }
    let dx = cross_entropy_gradient((&logits, &targets), &sums, dy.item());
    Ok([Some(Tensor::new(dx))])
}

/// A loss of predictions and a target of the same shape.
pub(super) fn paired<T: Float>(
    loss: &Handle<T>,
    x: &Tensor<T>,
    (parameter, target): (&str, &Tensor<T>),
    at: Caller,
) -> Result<Tensor<T>> {
    check_same_shape(loss.info().name, x.shape(), parameter, target.shape())?;
    only(T::elementwise(loss.clone(), &[x, target], &[], at))
}

/// The form of a loss of two inputs of one form.
pub(super) fn of_pair(_: &Operator, inputs: &[&Form]) -> Inferred {
    let [x, target] = exactly(inputs)?;
    if !float_form(x)?.agrees(target) {
        return Err(format!("the target is {target}, the predictions {x}"));
    }
    Ok(vec![Form::new(x.dtype, Dims::new())])
}

/// # Losses
///
/// Each is a scalar, the mean over all predictions; NaN where there are none.
impl<T: Element> Tensor<T> {
    /// The mean cross entropy of logits `[n, classes]` and the true class of each row: the loss
    /// of a classifier. Softmax and logarithm are part of it, without overflow. More axes may follow
    /// the classes; those of the targets then follow `n`. See [`Tensor::cross_entropy_with`] for ignored
    /// targets, weights, smoothing and another reduction.
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
    ///
    /// # Panics
    ///
    /// If this has fewer than two axes, `targets` has not one class for each row, or one is outside
    /// `0..classes`; see [`Tensor::try_cross_entropy`].
    #[track_caller]
    pub fn cross_entropy(&self, targets: &Tensor<i64>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(self.try_cross_entropy(targets))
    }

    /// [`Tensor::cross_entropy`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] or [`Error::Index`].
    #[track_caller]
    pub fn try_cross_entropy(&self, targets: &Tensor<i64>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        if self.ndim() <= 2 {
            return call(&CROSS_ENTROPY, [], [self.untyped(), targets.untyped()]);
        }
        check_places("cross_entropy", self.shape(), targets.shape())?;
        let order: Vec<isize> = [0].into_iter().chain(2..self.ndim() as isize).chain([1]).collect();
        let rows = self.permute(&order).reshape([targets.len(), self.shape()[1]]);
        call(&CROSS_ENTROPY, [], [rows.untyped(), targets.flatten().untyped()])
    }

    /// The mean of the negated log-probability of the true class of each row of `[n, classes]`:
    /// [`Tensor::cross_entropy`] after [`Tensor::log_softmax`].
    ///
    /// # Panics
    ///
    /// As [`Tensor::cross_entropy`]; see [`Tensor::try_nll_loss`].
    #[track_caller]
    pub fn nll_loss(&self, targets: &Tensor<i64>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(self.try_nll_loss(targets))
    }

    /// [`Tensor::nll_loss`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] or [`Error::Index`].
    #[track_caller]
    pub fn try_nll_loss(&self, targets: &Tensor<i64>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        check_targets("nll_loss", self.shape(), targets)?;
        Ok(-self.gather(1, &targets.unsqueeze(1)).mean())
    }

    /// The mean of the squared differences.
    ///
    /// # Panics
    ///
    /// If the shapes differ (nothing is broadcast); see [`Tensor::try_mse_loss`].
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(self.try_mse_loss(target))
    }

    /// [`Tensor::mse_loss`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes differ.
    #[track_caller]
    pub fn try_mse_loss(&self, target: &Tensor<T>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        check_same_shape("mse_loss", self.shape(), "target", target.shape())?;
        Ok((self - target).square().mean())
    }

    /// The mean of `d * d / 2` where the difference `d` is below 1, and of `|d| - 1 / 2` elsewhere.
    ///
    /// # Panics
    ///
    /// If the shapes differ (nothing is broadcast); see [`Tensor::try_smooth_l1_loss`].
    #[track_caller]
    pub fn smooth_l1_loss(&self, target: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(self.try_smooth_l1_loss(target))
    }

    /// [`Tensor::smooth_l1_loss`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes differ.
    #[track_caller]
    pub fn try_smooth_l1_loss(&self, target: &Tensor<T>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        call(&SMOOTH_L1, [], [self.untyped(), target.untyped()])
    }

    /// The mean cross entropy of logits and probabilities of "yes" of the same shape.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let loss = Tensor::from([0.0, 40.0]).binary_cross_entropy_with_logits(&Tensor::from([1.0, 1.0]));
    /// assert!((loss.item() - 2_f64.ln() / 2.0).abs() < 1e-15);
    /// ```
    ///
    /// # Panics
    ///
    /// If the shapes differ; see [`Tensor::try_binary_cross_entropy_with_logits`].
    #[track_caller]
    pub fn binary_cross_entropy_with_logits(&self, targets: &Tensor<T>) -> Tensor<T>
    where
        T: HasMean,
    {
        expect(self.try_binary_cross_entropy_with_logits(targets))
    }

    /// [`Tensor::binary_cross_entropy_with_logits`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the shapes differ.
    #[track_caller]
    pub fn try_binary_cross_entropy_with_logits(&self, targets: &Tensor<T>) -> Result<Tensor<T>>
    where
        T: HasMean,
    {
        call(&BINARY_CROSS_ENTROPY, [], [self.untyped(), targets.untyped()])
    }
}
