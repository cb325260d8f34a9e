//! Backward that adds to `.grad`: its checks, what its walk gathers for leaves, and when that is written.

use std::cell::Cell;
use std::panic::Location;

use super::accumulate::{accumulate, keep, own};
use super::anomaly;
use super::callbacks::Running;
use super::hooks::run_leaf_hooks;
use super::traversal::{AddressMap, AddressSet};
use super::walk::{BackwardOptions, walk};
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, GradMode, HookId, Lost, Sink, TensorHandle, for_any, is_suspended,
};

/// Backward from several outputs at once. `seeds[i]` is the initial gradient of output `i`, with
/// its shape and element type; `None` is 1 for an output of one element. Outputs that want no
/// gradient are skipped.
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
/// [`Error::Count`] for no outputs or a wrong number of seeds, [`Error::Duplicate`] for the same
/// output twice, [`Error::SeedShape`] and [`Error::ElementType`] for a seed that does not fit,
/// [`Error::Unsupported`] for outputs without a graph in a hook or in an op's forward or backward, where
/// nothing is recorded, and all errors of a walk: a freed graph, a changed saved tensor, a wrong gradient or
/// an error from user code. No gradient is written then.
pub fn backward(
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
) -> Result<()> {
    const OP: &str = "backward";
    run(OP, outputs, seeds, options, |until| {
        let mut found = Gradients::default();
        found.retained = walk(OP, outputs, seeds, until, options, &mut found)?;
        found.commit(until)
    })
}

/// Checks the arguments of a backward, runs its walk, which gets the first hook that is not to run, and then the
/// callbacks.
#[inline]
pub(super) fn run(
    op: &'static str,
    outputs: &[AnyTensor],
    seeds: &[Option<AnyTensor>],
    options: BackwardOptions,
    pass: impl FnOnce(HookId) -> Result<()>,
) -> Result<()> {
    check_counts(op, outputs.len(), seeds.len())?;
    check_distinct(op, "outputs", outputs)?;
    anomaly::check()?;
    check_recorded(op, outputs)?;
    note(outputs);
    let running = Running::start();
    {
        let _mode = GradMode::set(options.create_graph);
        pass(HookId::next_id())?;
    }
    running.finish()
}

/// An error for outputs without a graph where the library turned recording off.
pub(super) fn check_recorded(op: &'static str, outputs: &[AnyTensor]) -> Result<()> {
    if !is_suspended() || !outputs.iter().all(AnyTensor::stop_gradient) {
        return Ok(());
    }
    let why = "no output has a graph: forward and backward of an op, functions of a program, and hooks, run with \
               recording off; compute the outputs in `enable_grad().run(|| ..)`";
    Err(Error::Unsupported { op, why: why.to_owned() })
}

pub(super) fn backward_of(
    output: &dyn TensorHandle,
    seed: Option<&dyn TensorHandle>,
    options: BackwardOptions,
) -> Result<()> {
    backward(&[output.any()], &[seed.map(TensorHandle::any)], options)
}

pub(super) fn check_distinct(op: &'static str, name: &str, tensors: &[AnyTensor]) -> Result<()> {
    let mut seen = AddressSet::default();
    let again = tensors.iter().position(|tensor| !seen.insert(tensor.address(), ()));
    match again {
        Some(i) => Err(Error::Duplicate { op, parameter: format!("{name}[{i}]") }),
        None => Ok(()),
    }
}

pub(super) fn check_counts(op: &'static str, outputs: usize, seeds: usize) -> Result<()> {
    if outputs == 0 {
        let what = "or more outputs".into();
        return Err(Error::Count { op, what, expected: 1, found: 0 });
    }
    if outputs != seeds {
        let what = "seeds, one for each output".into();
        return Err(Error::Count { op, what, expected: outputs, found: seeds });
    }
    Ok(())
}

/// The results of a walk: gradients of leaves, and of other tensors that retain theirs.
#[derive(Default)]
pub(super) struct Gradients {
    leaves: AddressMap<(AnyTensor, Option<AnyTensor>), usize>,
    pub(super) retained: Vec<(AnyTensor, AnyTensor)>,
}

impl Gradients {
    pub(super) fn add(&mut self, leaf: &AnyTensor, grad: AnyTensor) -> Result<()> {
        let key = leaf.address().addr();
        if let Some((_, sum)) = self.leaves.get_mut(&key) {
            return accumulate(sum, grad);
        }
        self.leaves.insert(key, (leaf.clone(), Some(grad)));
        Ok(())
    }

    pub(super) fn append(&mut self, later: Self) -> Result<()> {
        self.retained.extend(later.retained);
        let mut leaves = later.leaves.entries.into_iter();
        leaves.try_for_each(|(_, (leaf, grad))| grad.map_or(Ok(()), |grad| self.add(&leaf, grad)))
    }

    /// Writes the gradients of all leaves, and of all tensors that retain theirs; none of them if a hook
    /// fails or there is no memory for a gradient. Hooks before `until` run.
    pub(super) fn commit(mut self, until: HookId) -> Result<()> {
        for (_, (leaf, slot)) in &mut self.leaves.entries {
            if let Some(mut grad) = slot.take() {
                run_leaf_hooks(leaf, until, &mut grad)?;
                *slot = Some(own(grad));
            }
        }
        self.retained.into_iter().for_each(|(tensor, grad)| keep(&tensor, grad));
        for (_, (leaf, grad)) in &mut self.leaves.entries {
            if let Some(grad) = grad.take() {
                keep(leaf, grad);
            }
        }
        Ok(())
    }
}

impl<'g> Sink<'g> for Gradients {
    #[inline]
    fn wants(&self, edge: &Edge) -> bool {
        !matches!(edge, Edge::None(_))
    }

    fn wants_all(&self) -> bool {
        true
    }

    fn deliver(&mut self, edge: &'g Edge, grad: AnyTensor) -> Result<()> {
        match edge {
            Edge::Leaf(leaf) => self.add(leaf, grad),
            _ => Ok(()),
        }
    }
}

/// The first output of a backward that had nothing to do. Keeps no tensor alive.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    /// The op that produced the output, and where it was called.
    pub(crate) origin: Option<(&'static str, &'static Location<'static>)>,
    pub(crate) lost: Lost,
}

thread_local! {
    static LAST_IDLE: Cell<Option<Idle>> = const { Cell::new(None) };
}

#[inline]
pub(super) fn note(outputs: &[AnyTensor]) {
    if outputs.iter().all(AnyTensor::stop_gradient) {
        note_idle(outputs);
    } else if LAST_IDLE.get().is_some() {
        LAST_IDLE.set(None);
    }
}

#[cold]
fn note_idle(outputs: &[AnyTensor]) {
    LAST_IDLE.set(outputs.first().map(|output| {
        for_any!(output, t => Idle {
            origin: t.origin().map(|node| (node.name(), node.location)),
            lost: t.lost(),
        })
    }));
}

pub(crate) fn last_idle() -> Option<Idle> {
    LAST_IDLE.get()
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
        let _hook =
            y.register_hook(|_| Ok(Some(Tensor::from_value(Value::out_of_memory(&[20_000])))));
        assert!(catch_unwind(AssertUnwindSafe(|| loss().backward())).is_err());
        let first = |leaf: &Tensor<f64>| leaf.grad().map(|grad| grad.at(&[0]));
        assert_eq!([first(x), first(y), first(z)], [Some(2.0), Some(4.0), Some(6.0)]);
    }
}
