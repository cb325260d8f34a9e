//! The op of a custom op's nodes, which all its calls share.

use std::any::TypeId;
use std::cell::RefCell;
use std::sync::Arc;

use super::CustomOp;
use super::backward::{PullFn, RawBackward, lend_saved};
use super::call::Called;
use super::forward_mode::RawJvp;
use super::inputs::Info;
use super::saved::Unpack;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Edge, GradMode, Node, NodeRef, NumberRead, Op, Protector, Pull, Push, ReadWatch,
    Role, SavedState, Slots, for_any,
};

#[doc(hidden)]
pub struct CustomOpRules {
    pub(super) info: Info,
    pub(super) saves: fn() -> bool,
    pub(super) sets: fn() -> bool,
    pub(super) lend_saved: fn(&RawBackward<'_>, &mut Unpack<'_>, PullFn) -> Result<()>,
    pub(super) generated_pull: PullFn,
    pub(super) push: Option<fn(&RawJvp<'_>) -> Result<()>>,
}

impl CustomOpRules {
    pub(super) const fn of<L: CustomOp<K>, K>() -> Self {
        Self {
            info: Info::of(L::INFO, L::SHAPES),
            saves: is_not_unit::<L::Saved>,
            sets: is_not_unit::<L::Attrs>,
            lend_saved: lend_saved::<L::Saved>,
            generated_pull: L::pull,
            push: L::PUSH,
        }
    }

    #[inline]
    fn called<'a>(&'a self, node: &'a NodeRef) -> Called<'a> {
        Called { info: &self.info, location: node.location, notes: node.attrs() }
    }

    /// If recorded, the node that refuses a second order: the producer of the results computed from `grads`.
    #[inline]
    fn barrier(&self, recorded: bool, node: &NodeRef, grads: &Slots) -> Option<NodeRef> {
        (self.info.once_differentiable && recorded).then(|| self.new_barrier(node, grads))
    }

    #[cold]
    fn new_barrier(&self, node: &NodeRef, grads: &Slots) -> NodeRef {
        let grads = grads.iter().flatten().map(|grad| for_any!(grad, t => t.edge()));
        let edges = node.edges().iter().map(Edge::share).chain(grads).collect();
        let state = SavedState::new(Some(Arc::new(self.info.name)), &mut []);
        NodeRef::record(&Barrier, edges, state, node.location)
    }

    /// Runs `function` of the user. If it is `recorded`, it must not read numbers: a second derivative through them
    /// would be lost.
    #[inline]
    fn run_recorded(
        &self,
        function: &str,
        recorded: bool,
        run: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let reads = recorded.then(ReadWatch::start);
        run()?;
        match reads.and_then(ReadWatch::end) {
            Some(read) => Err(self.has_read(function, read)),
            None => Ok(()),
        }
    }

    #[cold]
    fn has_read(&self, function: &str, (method, place): NumberRead) -> Error {
        Error::Unsupported {
            op: self.info.name,
            why: format!(
                "{function} reads numbers of a tensor that wants a gradient ({method} at {place}), so a second \
                 derivative through them would be lost; compute with tensors, read its `detach()` if that is meant, \
                 or declare `once_differentiable`"
            ),
        }
    }
}

/// Attaches a gradient to the barrier, if any, in its own slot, as shapes and element types differ.
fn via_barrier(barrier: &Option<NodeRef>, slot: usize, grad: AnyTensor) -> AnyTensor {
    match barrier {
        Some(barrier) => for_any!(grad, t => t.attached(barrier.clone(), slot as u32).into()),
        None => grad,
    }
}

fn is_not_unit<T: 'static>() -> bool {
    TypeId::of::<T>() != TypeId::of::<()>()
}

impl Op for CustomOpRules {
    fn name(&self) -> &'static str {
        self.info.name
    }

    fn input_name(&self, position: usize) -> String {
        self.info.input(position)
    }

    fn saved_name(&self, role: Role, position: usize) -> String {
        match role {
            Role::Input(input) => self.input_name(input.into()),
            _ => format!("saved tensor {position}"),
        }
    }

    fn has_jvp(&self) -> bool {
        self.push.is_some()
    }

    fn pull<'g>(&self, mut grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (node, edges, once) = (pull.node, pull.node.edges(), self.info.once_differentiable);
        let barrier = self.barrier(pull.create_graph, node, &grads);
        // Backward may change the gradients in place; nobody else may see that.
        for grad in grads.iter_mut().flatten() {
            grad.unshare();
        }
        let at = At { node, create_graph: pull.create_graph && !once };
        let wants = |tensor: usize| pull.wants(&edges[tensor]);
        let mut returned = RefCell::default();
        {
            let saved = &mut Unpack(at.read(pull.retain)?);
            let raw = RawBackward::new(self.called(node), &wants, &grads, &returned);
            let _off = once.then(|| GradMode::set(false));
            let pull = || (self.lend_saved)(&raw, saved, self.generated_pull);
            self.run_recorded("backward", at.create_graph, pull)?;
            if let Some(error) = raw.error.into_inner() {
                return Err(*error);
            }
        }
        drop(grads);
        for (tensor, grad) in returned.get_mut() {
            // Taken in place: a move of the list is slower.
            if let Some(grad) = grad.take() {
                pull.sink.deliver(&edges[*tensor], via_barrier(&barrier, *tensor, grad))?;
            }
        }
        Ok(())
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let (called, once) = (self.called(push.node), self.info.once_differentiable);
        let (Some(function), Some(inputs)) = (self.push, called.primals()) else {
            // Its backward need not consist of differentiable ops, so it cannot be transposed.
            if !once {
                return Ok(None);
            }
            return Err(Error::Unsupported {
                op: self.info.name,
                why: "its backward is `once_differentiable`, so forward mode cannot be had from it; \
                      write `fn jvp` in the op, or remove that argument of #[py_layer] if backward is \
                      made of differentiable ops"
                    .to_owned(),
            });
        };
        let at = push.at();
        for (position, (tensor, version)) in inputs.iter().enumerate() {
            at.check_version(*version, tensor.version(), || called.input_name(position))?;
        }
        let at = At { create_graph: push.record && !once, ..at };
        let saved = RefCell::new(Unpack(at.read(true)?));
        let mut tangents = std::mem::take(&mut push.tangents);
        let barrier = self.barrier(push.record, push.node, &tangents);
        let _off = once.then(|| GradMode::set(false));
        tangents.iter_mut().flatten().for_each(AnyTensor::unshare);
        let (tangents, outputs) = (RefCell::new(tangents), RefCell::default());
        let raw = RawJvp { called, saved, inputs, tangents, outputs };
        self.run_recorded("jvp", at.create_graph, || function(&raw))?;
        let outputs = raw.outputs.into_inner().into_iter().enumerate();
        Ok(Some(outputs.map(|(slot, output)| Some(via_barrier(&barrier, slot, output?))).collect()))
    }
}

impl Called<'_> {
    fn input_name(&self, tensor: usize) -> String {
        let holds = |group: &usize| {
            let (first, count) = self.group(*group);
            (first..first + count).contains(&tensor)
        };
        let info = self.info;
        let name = (0..info.inputs).find(holds).and_then(|group| info.input_name(group));
        name.unwrap_or("an input").to_owned()
    }
}

/// The op behind the gradients of a `once_differentiable` op: its backward is an error.
struct Barrier;

impl Op for Barrier {
    fn name(&self) -> &'static str {
        "once_differentiable"
    }

    fn name_of(&self, node: &Node) -> &'static str {
        node.attrs().copied().unwrap_or(self.name())
    }

    fn pull<'g>(&self, _: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        Err(Error::Unsupported {
            op: pull.node.name(),
            why:
                "its backward is `once_differentiable`: there is no second derivative through it; \
                  remove that argument of #[py_layer] if backward is made of differentiable ops and reads no saved \
                  intermediates, only inputs and outputs"
                    .to_owned(),
        })
    }
}
