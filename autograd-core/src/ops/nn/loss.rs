//! The mean cross entropy of logits and classes.

use smallvec::smallvec;

use super::super::gather::check_indices;
use super::super::table::{
    Dims, Form, Inferred, OpDef, entries, exactly, float, for_programs, several,
};
use super::super::{Caller, Float};
use super::kernels;
use crate::array::{DType, Shape, Value};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{
    AnyTensor, Rule, Saved, SavedReader, Tensor, finish, is_grad_enabled, unrecorded,
};

pub(super) fn check_places(op: &'static str, scores: &[usize], targets: &[usize]) -> Result<()> {
    let [n, _, rest @ ..] = scores else {
        let expected = "of shape [n, classes] or [n, classes, ..]";
        return Err(Error::shape(op, RECEIVER, expected, scores));
    };
    if targets.split_first() == Some((n, rest)) {
        return Ok(());
    }
    let places = [&[*n], rest].concat();
    let what = match rest {
        [] => "one class for each row",
        _ => "that of the logits without their axis 1",
    };
    Err(Error::shape(op, "targets", format!("of shape {places:?}, {what}"), targets))
}

entries! {
    LOSSES:

    CROSS_ENTROPY = OpDef {
        infer: for_programs(|_, inputs| of_logits(inputs)),
        run: |_, values, at| match several(values)? {
            [logits, AnyTensor::Int64(classes)] => {
                float!(smallvec![logits], x => cross_entropy(&x, &classes, at))
            }
            _ => Err("its classes must be int64".into()),
        },
        ..OpDef::new("cross_entropy")
    };
}

pub(crate) fn of_logits(inputs: &[&Form]) -> Inferred {
    let [logits, targets] = exactly(inputs)?;
    float(logits)?;
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
    check_places("cross_entropy", logits.shape(), targets.shape())?;
    let (loss, sums) = mean_cross_entropy(logits, targets)?;
    let loss = Value::scalar(loss);
    if !logits.would_record() {
        return Ok(unrecorded("cross_entropy", caller, &[logits], loss).and_lost(targets));
    }
    // Backward computes the probabilities again, which costs no memory until then.
    Ok(finish(CROSS_ENTROPY.name, caller, &[logits], loss, || {
        let saved = [Saved::input(0, logits), Saved::input(1, targets), Saved::plain(sums)];
        Rule::new(saved, pull_cross_entropy::<T>)
    }))
}

/// Returns the loss, and the log-sum-exp of each row, which the gradient reads.
fn mean_cross_entropy<T: Float>(
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
) -> Result<(T, Value<T>)> {
    let classes = logits.shape()[1];
    check_indices("cross_entropy", "targets", &targets.read(), classes)?;
    let (logits, targets) = (logits.read(), targets.read());
    let (logits, targets) = (logits.contiguous(), targets.contiguous());
    let rows = logits.as_slice().unwrap_or(&[]);
    let targets = targets.as_slice().unwrap_or(&[]);
    let shape = Shape::from_slice(&[targets.len()]);
    let sums = Value::written(shape, &mut |sums| kernels::log_sum_exp(rows, classes, sums));
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
    Value::written(Shape::from_slice(logits.shape()), &mut |rows| {
        rows.copy_from_slice(logits.as_slice().unwrap_or(&[]));
        kernels::softmax_scaled(rows, sums.as_slice().unwrap_or(&[]), classes, scale);
        for (row, &target) in targets.as_slice().unwrap_or(&[]).iter().enumerate() {
            let hit = &mut rows[row * classes + target as usize];
            *hit = *hit - scale;
        }
    })
}

fn pull_cross_entropy<T: Float>(
    saved: &mut SavedReader<'_>,
    dy: Tensor<T>,
    _: &[bool],
) -> Result<[Option<Tensor<T>>; 1]> {
    let (logits, targets): (Tensor<T>, Tensor<i64>) = (saved.tensor()?, saved.tensor()?);
    let sums = saved.plain::<Value<T>>();
    if is_grad_enabled() {
        let off = logits.softmax(1) - targets.one_hot::<T>(logits.shape()[1]);
        return Ok([Some(off * (dy / sums.len() as f64))]);
    }
    let dx = cross_entropy_gradient((&logits, &targets), &sums, dy.item());
    Ok([Some(Tensor::from_value(dx))])
}
