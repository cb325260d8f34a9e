//! Backward that adds to `.grad`.

use super::grad::find;
use super::options::BackwardOptions;
use super::start::{check_counts, check_distinct};
use super::walk::{Grads, Outcome};
use super::{after, anomaly, hooks, idle};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::graph::{AnyTensor, GradMode, Handle, HookId, Tensor, for_any};
use crate::ops::Float;

/// Backward from several outputs at once.
///
/// `seeds[i]` is the gradient that output `i` starts with, of its shape and element type; `None`
/// is 1 for an output of one element. Outputs that want no gradient are passed over.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward};
///
/// let x = Tensor::from(2.0);
/// x.set_stop_gradient(false);
/// let y = &x * &x;
/// let z = &y * &y * &y;
/// let seeds = [Some(Tensor::from(10.0).into()), Some(Tensor::from(1.0).into())];
/// backward(&[y.into(), z.into()], &seeds, BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().item(), 232.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] for no outputs or another number of seeds, [`Error::Duplicate`] for the same
/// output twice, [`Error::SeedShape`] and [`Error::ElementType`] for a seed that does not fit, and
/// all that a walk can give: a freed graph, a changed saved tensor, a wrong gradient or an error
/// from user code. No gradient is written then.
pub fn backward(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
) -> Result<()> {
    check_counts("backward", outputs.len(), seeds.len())?;
    check_distinct("backward", "outputs", outputs)?;
    anomaly::check()?;
    idle::note(outputs);
    let running = after::Running::start();
    {
        let _mode = GradMode::set(options.create_graph);
        let Outcome { leaves, retained, until, .. } =
            Outcome::of("backward", outputs, seeds, None, options)?;
        commit(leaves.grads, retained.unwrap_or_default(), until)?;
    }
    running.finish()
}

pub(super) fn backward_of(
    output: &dyn Handle,
    seed: Option<&dyn Handle>,
    options: BackwardOptions,
) -> Result<()> {
    backward(&[output.any()], &[seed.map(Handle::any)], options)
}

/// [`backward()`] that adds to `.grad` of these inputs only, leaves or outputs of ops: no other
/// tensor's changes, and only ops on the way to them run. An input that no output was computed
/// from gets nothing.
///
/// ```
/// use autograd_core::{BackwardOptions, Tensor, backward_to};
///
/// let (x, y) = (Tensor::from(2.0), Tensor::from(5.0));
/// x.set_stop_gradient(false);
/// y.set_stop_gradient(false);
/// let loss = &x * &y;
/// backward_to(&[loss.into()], &[None], &[x.clone().into()], BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().item(), 5.0);
/// assert!(y.grad().is_none());
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Count`] for no inputs, [`Error::Duplicate`] for the same input twice; for the rest see
/// [`backward()`].
pub fn backward_to(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    inputs: &[AnyTensor],
    options: BackwardOptions,
) -> Result<()> {
    let running = after::Running::start();
    {
        let until = HookId::coming();
        let found = find("backward_to", outputs, inputs, &[], seeds, options, false)?;
        idle::note(outputs);
        let _mode = GradMode::set(options.create_graph);
        let (mut leaves, mut others) = (Grads::new(), Vec::new());
        for (x, grad) in inputs.iter().zip(found) {
            match grad {
                Some(grad) if !for_any!(x, t => t.is_leaf()) => others.push((x.clone(), grad)),
                grad => leaves.push((x.clone(), grad)),
            }
        }
        commit(leaves, others, until)?;
    }
    running.finish()
}

/// Gives every leaf its gradient, and every tensor on the way that keeps one; all of them, or none
/// if a hook fails or there is no memory for what was deferred. Hooks before `until` run.
pub(super) fn commit(
    mut leaves: Grads,
    retained: Vec<(AnyTensor, AnyTensor)>,
    until: HookId,
) -> Result<()> {
    for (leaf, slot) in &mut leaves {
        if let Some(grad) = slot.take() {
            *slot = Some(computed(hooks::run_leaf_hooks(leaf, until, grad)?));
        }
    }
    // Most often there are none, and to collect them would take longer than to look.
    if !retained.is_empty() {
        let all: Vec<_> = retained.into_iter().map(|(x, grad)| (x, computed(grad))).collect();
        all.into_iter().for_each(|(tensor, grad)| accumulate(&tensor, grad));
    }
    for (leaf, slot) in &mut leaves {
        if let Some(grad) = slot.take() {
            accumulate(leaf, grad);
        }
    }
    Ok(())
}

fn computed(grad: AnyTensor) -> AnyTensor {
    match grad {
        AnyTensor::Float32(grad) => grad.materialized().into(),
        AnyTensor::Float64(grad) => grad.materialized().into(),
        other => other,
    }
}

fn accumulate(tensor: &AnyTensor, grad: AnyTensor) {
    fn add<T: Float>(tensor: &Tensor<T>, grad: Tensor<T>) {
        tensor.update_grad(|before| match before {
            Some(before) => (before + grad).materialized(),
            None => grad.owned(),
        });
    }
    match (tensor, grad) {
        (AnyTensor::Float32(tensor), AnyTensor::Float32(grad)) => add(tensor, grad),
        (AnyTensor::Float64(tensor), AnyTensor::Float64(grad)) => add(tensor, grad),
        _ => unreachable!("a gradient has its tensor's element type"),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::Tensor;
    use crate::array::Value;

    #[test]
    fn without_memory_no_gradient_is_written() {
        let leaves = [1.0, 2.0, 3.0].map(|element| Tensor::full([20_000], element));
        leaves.iter().for_each(|leaf| leaf.set_stop_gradient(false));
        let [x, y, z] = &leaves;
        let loss = || (x.square() + y.square() + z.square()).sum();
        loss().backward().unwrap();
        let _hook = y.register_hook(|_| Ok(Some(Tensor::new(Value::out_of_memory(&[20_000])))));
        assert!(catch_unwind(AssertUnwindSafe(|| loss().backward())).is_err());
        let first = |leaf: &Tensor<f64>| leaf.grad().map(|grad| grad.at(&[0]));
        assert_eq!([first(x), first(y), first(z)], [Some(2.0), Some(4.0), Some(6.0)]);
    }
}
