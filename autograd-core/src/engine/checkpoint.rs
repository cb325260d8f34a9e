//! Recomputes values in backward instead of keeping them.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

use super::forward::{self, Stop};
use super::traversal::{target, topological};
use super::walk::{BackwardOptions, walk_along};
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Edge, GradMode, HookId, NodeRef, Nodes, Op, Plain, Pull, Push, Saved,
    SavedReader, SavedState, Sink, Slots, Tensor, Unpacked, adopt, collect, for_any,
    is_grad_enabled, only,
};
use crate::ops::Float;
use crate::random::{self, Generator, ThreadGeneratorGuard};

/// Runs `f` and keeps only its result: backward runs `f` again and then walks through what that run
/// recorded. So a model cut into pieces holds the intermediate values of one piece at a time (Chen et al. 2016).
///
/// Gradients flow to every captured tensor that wants one, and are the same as without this function; higher
/// orders too. Random numbers (dropout) are the same in both runs: the second one draws from a copy of the
/// process-wide generator, and does not affect other draws. If ops are not recorded, `f` is just called.
///
/// `f` must do the same in both runs. Hooks that it registers on its own tensors run in backward. Its side
/// effects happen twice, unless it checks [`is_recomputing`]; under `retain_graph`, more often.
///
/// ```
/// use autograd_core::{Tensor, checkpoint};
///
/// let w = Tensor::from([0.5, 2.0]);
/// w.set_stop_gradient(false);
/// let x = Tensor::from([1.0, 1.0]);
/// let inside = w.clone();
/// let y = checkpoint(move || (&x * &inside).exp().sin().sum());
/// y.backward()?;
/// let expected = 0.5_f64.exp() * 0.5_f64.exp().cos();
/// assert!((w.grad().unwrap().at(&[0]) - expected).abs() < 1e-12);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// From the backward: [`Error::SavedTensorChanged`] if a leaf that `f` uses was changed in place since,
/// [`Error::Unsupported`] if the second run returns another shape or uses another tensor.
///
/// # Panics
///
/// If `f` panics, here or in the backward; all modes are then restored.
#[track_caller]
pub fn checkpoint<T: Float>(f: impl Fn() -> Tensor<T> + Send + Sync + 'static) -> Tensor<T> {
    let location = Location::caller();
    if !is_grad_enabled() {
        return f();
    }
    let random = Box::new(random::rng_state());
    let (y, own) = {
        // What this run saves is dropped, so it is not packed.
        let _unpacked = Unpacked::start();
        collect(&f)
    };
    if y.stop_gradient() {
        return y;
    }
    let edges = outgoing_edges(&y.edge(), &own);
    let versions: Vec<u32> = edges.iter().map(version).collect();
    let shape = y.shape().to_vec();
    let value = y.read().into_owned();
    // This drops all that the run has recorded.
    drop(y);
    let f: Arc<Run> = Arc::new(move || AnyTensor::from(f()));
    let call: Plain = Arc::new(Call { versions, shape, random });
    let f = &mut [Saved::Plain(Arc::new(f))];
    let edges = edges.into_iter().collect();
    let node = NodeRef::record(&Checkpoint, edges, SavedState::new(Some(call), f), location);
    Tensor::output(value, node)
}

thread_local! {
    static RECOMPUTING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the closure of a [`checkpoint`] is run again on this thread, for a backward. Code that counts or
/// collects running means, as [`BatchNorm2d`](crate::nn::BatchNorm2d), does so in the first run only.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use autograd_core::{Tensor, checkpoint, is_recomputing};
///
/// let x = Tensor::from(2.0);
/// x.set_stop_gradient(false);
/// let calls = Arc::new(AtomicUsize::new(0));
/// let (inside, counter) = (x.clone(), Arc::clone(&calls));
/// let y = checkpoint(move || {
///     if !is_recomputing() {
///         counter.fetch_add(1, Ordering::Relaxed);
///     }
///     inside.square()
/// });
/// y.backward()?;
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub fn is_recomputing() -> bool {
    RECOMPUTING.get()
}

struct Recomputing(bool);

impl Recomputing {
    fn start() -> Self {
        Self(RECOMPUTING.replace(true))
    }
}

impl Drop for Recomputing {
    fn drop(&mut self) {
        RECOMPUTING.set(self.0);
    }
}

type Run = dyn Fn() -> AnyTensor + Send + Sync;

/// The op of a checkpoint. It saves the closure; edges lead to the tensors that it used but did not create.
struct Checkpoint;

struct Call {
    /// The version of the leaf behind each edge; 0 behind other edges.
    versions: Vec<u32>,
    shape: Vec<usize>,
    random: Box<Generator>,
}

fn version(edge: &Edge) -> u32 {
    match edge {
        Edge::Leaf(leaf) => leaf.version(),
        _ => 0,
    }
}

/// The edges that lead from the nodes in `own` to anything else, one for each target.
fn outgoing_edges(from: &Edge, own: &Nodes) -> Vec<Edge> {
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let enter = |edge: &Edge| {
        let is_own = edge.node().is_some_and(|node| own.contains(&node.address()));
        if !is_own && target(edge).is_some_and(|target| seen.insert(target)) {
            out.push(edge.clone());
        }
        is_own
    };
    topological(std::slice::from_ref(from), enter, |_| {});
    out
}

impl Op for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (y, own) = run_again(pull.read()?, &pull.at())?;
        let edge = for_any!(&y, t => t.edge());
        drop(y);
        let (edges, location) = (pull.node.edges(), pull.node.location);
        let inner: &mut dyn Sink<'_> = &mut RunSink { own, edges, sink: &mut *pull.sink, location };
        let options = BackwardOptions::new().create_graph(pull.create_graph);
        // Hooks that were registered in the second run also run.
        walk_along([Ok((&edge, only(grads)))], HookId::next_id(), options, inner).map(drop)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let (y, own) = run_again(push.read()?, &push.at())?;
        let edges = push.node.edges();
        if push.record {
            adopt(&own);
        }
        let edge = for_any!(&y, t => t.edge());
        let is_known = |own: &Edge| edges.iter().any(|edge| target(edge) == target(own));
        if !outgoing_edges(&edge, &own).iter().all(is_known) {
            return Err(unknown_tensor_error(push.node.location));
        }
        let known = edges.iter().cloned().zip(push.tangents.iter().cloned());
        match forward::push(&edge, known, push.record) {
            Ok(tangent) => Ok(Some(Slots::from_elem(tangent, 1))),
            Err(Stop::UnknownShapes) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

fn run_again(mut saved: SavedReader<'_>, at: &At<'_>) -> Result<(AnyTensor, Nodes)> {
    let Some(call) = at.node.attrs::<Call>() else { unreachable!("it was recorded with the op") };
    let f = match saved.entry() {
        Saved::Plain(f) => f.downcast::<Arc<Run>>().ok(),
        _ => None,
    };
    let Some(f) = f else { unreachable!("the closure is saved") };
    for (edge, saved) in at.node.edges().iter().zip(&call.versions) {
        let name = || "a tensor that the closure uses".into();
        at.check_version(*saved, version(edge), name)?;
    }
    let (y, own) = {
        let _mode = GradMode::set(true);
        let _random = ThreadGeneratorGuard::to(&call.random);
        let _recomputing = Recomputing::start();
        // A graph that is walked at once needs no packing.
        let _unpacked = (!at.create_graph).then(Unpacked::start);
        collect(|| f())
    };
    if y.shape() != call.shape {
        let why = format!(
            "the closure gave shape {:?} first and {:?} when it was run again for backward \
             (called at {})",
            call.shape,
            y.shape(),
            at.location()
        );
        return Err(Error::Unsupported { op: "checkpoint", why });
    }
    Ok((y, own))
}

fn unknown_tensor_error(location: &'static Location<'static>) -> Error {
    Error::Unsupported {
        op: "checkpoint",
        why: format!(
            "the closure (given at {location}) used a tensor when it was run again for backward \
             that it had not used before; it must do the same in both runs"
        ),
    }
}

/// The sink of the walk through the second run: passes on the gradients that leave the run.
struct RunSink<'a, 'g> {
    /// The nodes of that run. The gradients of all of them are wanted.
    own: Nodes,
    edges: &'g [Edge],
    sink: &'a mut dyn Sink<'g>,
    location: &'static Location<'static>,
}

impl<'p> Sink<'p> for RunSink<'_, '_> {
    fn wants(&self, edge: &Edge) -> bool {
        !self.ends(edge) || self.sink.wants(edge)
    }

    fn ends(&self, edge: &Edge) -> bool {
        edge.node().is_none_or(|node| !self.own.contains(&node.address()))
    }

    fn deliver(&mut self, edge: &'p Edge, grad: AnyTensor) -> Result<()> {
        let Some(wanted) = target(edge) else { return Ok(()) };
        // The outer sink knows the edges of the first run, and has them in its order.
        match self.edges.iter().find(|edge| target(edge) == Some(wanted)) {
            Some(edge) => self.sink.deliver(edge, grad),
            None => Err(unknown_tensor_error(self.location)),
        }
    }
}
