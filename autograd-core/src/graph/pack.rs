//! Hooks on saved tensors: a scope of this thread in which they are kept in another form.

use std::cell::RefCell;
use std::sync::Arc;

use super::any::{AnyTensor, for_any};
use super::context::Events;
use super::mode::GradMode;
use super::node::{Node, NodeRef, Observer, Op, Pull, Slots, only};
use super::node_parts::{
    Absent, At, Destination, Edge, Edges, Packed, Role, SavedState, SavedTensor,
};
use super::observing::Observing;
use super::tensor::Tensor;
use crate::array::DType;
use crate::error::{Error, HookResult, Result};

type Unpack = dyn Fn() -> HookResult<AnyTensor> + Send + Sync;

struct Hooks {
    pack: Box<dyn Fn(&AnyTensor) -> HookResult<Arc<Unpack>>>,
    failed: RefCell<Option<Error>>,
}

/// A scope that packs; `None` where packing is suspended.
struct Packing(Option<Hooks>);

impl Observer for Packing {
    fn events(&self) -> Events {
        Events::NODES
    }

    fn recorded(&self, node: &mut NodeRef) {
        if let (Some(node), Some(hooks)) = (node.get_mut(), &self.0) {
            node.pack(|node, saved, position| hooks.pack(node, saved, position));
        }
    }
}

/// A guard that suspends packing on this thread, except in scopes opened later.
pub(crate) struct Unpacked(#[allow(dead_code, reason = "kept for its drop")] Observing<Packing>);

impl Unpacked {
    pub(crate) fn start() -> Self {
        Self(Observing::start(Packing(None)))
    }
}

fn run_suspended<R>(f: impl FnOnce() -> R) -> R {
    let _suspended = Unpacked::start();
    GradMode::of(false, f)
}

/// A scope in which the tensors that ops on this thread save are packed. Created by [`saved_tensors_hooks`].
///
/// ```
/// use autograd_core::{AnyTensor, Tensor, saved_tensors_hooks};
///
/// let x = Tensor::from([0.5, 2.0]);
/// x.set_stop_gradient(false);
/// let single = |saved: &AnyTensor| Ok(saved.downcast_ref::<f64>().unwrap().cast::<f32>());
/// let scope = saved_tensors_hooks(single, |saved: &Tensor<f32>| Ok(saved.cast::<f64>().into()));
/// let y = x.square().sum();
/// drop(scope);
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec(), [1.0, 4.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[must_use = "tensors are packed only while the scope lives: `let _scope = saved_tensors_hooks(..);`"]
pub struct SavedTensorsHooks(Observing<Packing>);

impl SavedTensorsHooks {
    /// Runs a closure in this scope.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor, saved_tensors_hooks};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let unpack = |_: &()| Err("it was not kept".into());
    /// let y = saved_tensors_hooks(|_: &AnyTensor| Ok(()), unpack).run(|| x.square());
    /// let z = x.square();
    /// assert!(y.backward().is_err() && z.backward().is_ok());
    /// ```
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Checks that every tensor could be packed so far.
    ///
    /// ```
    /// use autograd_core::{AnyTensor, Tensor, saved_tensors_hooks};
    ///
    /// let x = Tensor::from(3.0);
    /// x.set_stop_gradient(false);
    /// let pack = |_: &AnyTensor| Err::<AnyTensor, _>("the disk is full".into());
    /// let scope = saved_tensors_hooks(pack, |packed: &AnyTensor| Ok(packed.clone()));
    /// assert!(scope.check().is_ok());
    /// let y = x.square();
    /// assert!(scope.check().unwrap_err().to_string().contains("the disk is full"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SavedTensorHook`] for the first that could not.
    pub fn check(&self) -> Result<()> {
        let failed = self.0.0.as_ref().and_then(|hooks| hooks.failed.borrow().clone());
        failed.map_or(Ok(()), Err)
    }
}

/// Packs the tensors that ops save for backward, to keep them on disk, compressed, in lower
/// precision or not at all, until the scope is dropped.
///
/// `pack` is called once for each tensor that an op on this thread, built-in or custom, saves
/// when it is recorded; its result replaces the tensor. `unpack` is called when a backward needs
/// the tensor: once, or once in each backward if the graph is retained. A tensor that two ops save
/// is packed twice.
///
/// - **Memory.** The node no longer holds the tensor, so its buffer is freed unless another owner
///   holds it. The graph holds a leaf that wants a gradient in any case.
/// - **Value.** `pack` gets the current value, outside the graph; a later change in place is no
///   error and has no effect on backward. `unpack` must return a tensor with the shape and the
///   element type of the packed one, in any memory layout. Its numbers are not checked; those of an
///   integer tensor (an index, say) must be the same.
/// - **Second order.** An unpacked tensor has its place in the graph again. If the backward is
///   recorded inside a scope, the tensors that it saves are packed too.
/// - **Nesting.** Only the innermost scope counts. Both hooks run with recording and packing off.
/// - **Threads.** A scope belongs to its thread. `unpack` runs in backward's, also after the scope.
/// - **Errors.** An op whose `pack` fails still succeeds; the error is returned by a backward that needs
///   the value, and at any time by [`SavedTensorsHooks::check`]. An error of `unpack` ends the backward.
///   A panic of `pack` propagates from the op's call, which then has recorded nothing; one of `unpack`
///   propagates from the backward. No gradient is written, and every tensor stays usable.
///
/// A rule's data beside tensors (shapes, positions, one sum for each row) is not packed.
/// [`checkpoint`](crate::checkpoint) packs nothing of its closure unless the closure itself opens a
/// scope, or its backward is recorded in one.
///
/// ```
/// use autograd_core::{AnyTensor, Tensor, saved_tensors_hooks};
///
/// let x = Tensor::from([0.5, 2.0]);
/// x.set_stop_gradient(false);
///
/// // In half the memory.
/// let pack = |saved: &AnyTensor| match saved {
///     AnyTensor::Float64(saved) => Ok(saved.cast::<f32>()),
///     other => Err(format!("no plan for {}", other.dtype()).into()),
/// };
/// let unpack = |packed: &Tensor<f32>| Ok(packed.cast::<f64>().into());
/// let y = saved_tensors_hooks(pack, unpack).run(|| x.square().sum());
///
/// y.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec(), [1.0, 4.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// As a guard: `let _scope = saved_tensors_hooks(pack, unpack);`. The example `saved_on_disk` keeps
/// saved tensors in files.
pub fn saved_tensors_hooks<P: Send + Sync + 'static>(
    pack: impl Fn(&AnyTensor) -> HookResult<P> + 'static,
    unpack: impl Fn(&P) -> HookResult<AnyTensor> + Send + Sync + 'static,
) -> SavedTensorsHooks {
    let unpack = Arc::new(unpack);
    let pack = move |tensor: &AnyTensor| {
        let (packed, unpack) = (pack(tensor)?, Arc::clone(&unpack));
        Ok::<Arc<Unpack>, _>(Arc::new(move || unpack(&packed)))
    };
    let hooks = Hooks { pack: Box::new(pack), failed: RefCell::new(None) };
    SavedTensorsHooks(Observing::start(Packing(Some(hooks))))
}

struct PackedTensor {
    unpack: Result<Arc<Unpack>>,
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    edge: Edge,
    version: u32,
    role: Role,
    stop: bool,
}

impl Hooks {
    fn pack(&self, node: &Node, saved: SavedTensor, position: usize) -> Arc<dyn Packed> {
        let SavedTensor { tensor, version, role } = saved;
        let name = node.saved_name(role, position);
        let alias = tensor.alias();
        let unpack = run_suspended(|| (self.pack)(&alias)).map_err(|error| {
            let error = Error::SavedTensorHook {
                op: node.name(),
                parameter: name.clone(),
                hook: "pack",
                source: error.into(),
                location: node.location,
            };
            self.failed.borrow_mut().get_or_insert_with(|| error.clone());
            error
        });
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        let edge = match role {
            // An output is restored at the node itself.
            Role::Output(_) | Role::OutputValue(_) => Edge::None(Absent::UNOBSERVED),
            _ => for_any!(&tensor, t => t.edge()),
        };
        // A change in place after packing is not an error; one during forward is.
        let role = match role {
            Role::Output(slot) if version == 0 => Role::OutputValue(slot),
            role => role,
        };
        let stop = tensor.stop_gradient();
        Arc::new(PackedTensor { unpack, name, dtype, shape, edge, version, role, stop })
    }
}

impl Packed for PackedTensor {
    fn unpack(&self, at: &At<'_>) -> Result<SavedTensor> {
        let unpack = self.unpack.as_ref().map_err(Error::clone)?;
        let tensor = match run_suspended(|| unpack()) {
            Ok(tensor) => tensor,
            Err(error) => {
                return Err(Error::SavedTensorHook {
                    op: at.op(),
                    parameter: self.name.clone(),
                    hook: "unpack",
                    source: error.into(),
                    location: at.location(),
                });
            }
        };
        if tensor.dtype() != self.dtype || tensor.shape() != self.shape {
            return Err(Error::Unpacked {
                op: at.op(),
                parameter: self.name.clone(),
                expected: (self.shape.clone(), self.dtype),
                found: (tensor.shape().to_vec(), tensor.dtype()),
                location: at.location(),
            });
        }
        // A rule may rely on row-major data, and the hook may have kept a handle.
        let value: AnyTensor =
            for_any!(&tensor, t => Tensor::from_value(t.read().contiguous().into_owned()).into());
        let tensor = match (self.role, &self.edge) {
            (Role::Output(_) | Role::OutputValue(_), _) if !self.stop => {
                for_any!(value, t => t.wanting().into())
            }
            (_, Edge::None(_)) => value,
            (_, Edge::Leaf(_)) => {
                let node = NodeRef::record(
                    &UnpackOp,
                    Edges::One(self.edge.clone()),
                    SavedState::NOTHING,
                    at.location(),
                );
                for_any!(value, t => t.attached(node, 0).into())
            }
            (_, edge) => match edge.to() {
                Destination::Node(node, slot) => {
                    for_any!(value, t => t.attached(node.clone(), slot).into())
                }
                Destination::None(_) | Destination::Leaf(_) => value,
            },
        };
        let version = match self.role {
            Role::Output(_) => self.version,
            _ => tensor.version(),
        };
        Ok(SavedTensor { tensor, version, role: self.role })
    }
}

/// The op of a tensor that replaces a leaf: it passes the gradient on to the leaf.
struct UnpackOp;

impl Op for UnpackOp {
    fn name(&self) -> &'static str {
        "unpack"
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull.sink.deliver(&pull.node.edges()[0], only(grads))
    }
}
