//! What the node of a layer does in backward: the same for all layers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;

use super::call::Notes;
use super::context::Lent;
use super::forward_mode::{Primal, push_tangents};
use super::grads::{Came, GradList, Gradient};
use super::outputs::TensorOutput;
use super::rules::LayerRules;
use super::saved::{Saved, Unpack};
use crate::array::shape::same;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Edge, Entries, GradMode, Node, NodeRef, Op, Protector, Pull, Push, Reader, Role,
    Sink, Slots, State, for_any,
};

impl Op for LayerRules {
    fn name(&self) -> &'static str {
        self.info.name
    }

    fn input_name(&self, position: usize) -> String {
        match self.info.input_name(position) {
            Some(name) => name.to_owned(),
            None => format!("input {position}"),
        }
    }

    fn saved_name(&self, role: Role, position: usize) -> String {
        match role {
            Role::Input(input) => self.input_name(input.into()),
            _ => format!("saved tensor {}", position + 1),
        }
    }

    fn has_jvp(&self) -> bool {
        self.push.is_some()
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        pull_through(Called::of(self, pull.node), grads, pull)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        push_tangents(Called::of(self, push.node), push)
    }
}

/// What a visit knows of the call.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) rules: &'a LayerRules,
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: &'a [Edge],
    /// None where each input and output is one tensor, all of one shape.
    notes: Option<&'a Notes>,
}

impl<'a> Called<'a> {
    fn of(rules: &'a LayerRules, node: &'a NodeRef) -> Self {
        Self { rules, edges: node.edges(), notes: node.attrs() }
    }

    /// Position of the first tensor of an input or, counted after these, an output, and how many tensors
    /// it has.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        self.notes.map_or((group, 1), |notes| notes.layout.group(group))
    }

    /// How many inputs and outputs.
    pub(super) fn groups(&self) -> usize {
        self.notes.map_or(self.rules.info.inputs + 1, |notes| notes.layout.groups())
    }

    /// The shape of a tensor; `None` where all have one.
    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> Option<&'a [usize]> {
        self.notes.map(|notes| notes.layout.shape(tensor))
    }

    pub(super) fn attrs(&self) -> &'a dyn Any {
        self.notes.and_then(|notes| notes.attrs.as_deref()).map_or(&(), |attrs| attrs)
    }

    /// What `jvp` gets, where forward mode was on.
    pub(super) fn inputs(&self) -> Option<&'a [Primal]> {
        self.notes?.inputs.as_deref()
    }
}

/// Calls a layer's backward, and hands on what it returns.
fn pull_through(called: Called<'_>, mut grads: Slots, pull: &mut Pull<'_, '_>) -> Result<()> {
    let rules = called.rules;
    let (op, location, node) = (rules.info.name, pull.node.location, pull.node);
    let edges = node.edges();
    let once = rules.info.once_differentiable;
    let create_graph = pull.create_graph && !once;
    // Who made the gradients, for a node that refuses a second order.
    let barrier = once && pull.create_graph;
    let barrier = barrier.then(|| Barrier::record(op, edges, &grads, location));
    let _off = once.then(|| GradMode::set(false));
    // Backward may change them in place; nobody else shall see that.
    grads.iter_mut().flatten().for_each(AnyTensor::unshare);
    let at = At { node, create_graph };
    let saved = Cell::new(Some(node.read(pull.retain, &at)?));
    let mut ways = Ways { edges, sink: &mut *pull.sink };
    let raw = RawBackward {
        at,
        saved,
        wants_all: pull.wants_all,
        came: Came::new(called, grads),
        ways: RefCell::new(&mut ways),
        barrier,
        broken: RefCell::new(None),
    };
    (rules.run)(&raw, rules.pull)
}

/// What forward saved, as its declared type; it is asked for once.
pub(super) fn unpack<'a, S: Saved>(saved: &Cell<Option<Reader<'a>>>, at: &At<'a>) -> Result<S> {
    let saved = saved.take().unwrap_or_else(|| unreachable!("it is asked for once"));
    S::unpack(&mut Unpack { saved, at: *at })
}

/// Where gradients go on to, by the positions of the inputs. What the generated code sees of a visit
/// does not name the time for which the graph stays.
trait Onward {
    fn wants(&self, tensor: usize) -> bool;
    fn deliver(&mut self, tensor: usize, grad: AnyTensor) -> Result<()>;
}

struct Ways<'a, 'g> {
    edges: &'g [Edge],
    sink: &'a mut dyn Sink<'g>,
}

impl Onward for Ways<'_, '_> {
    fn wants(&self, tensor: usize) -> bool {
        self.sink.wants(&self.edges[tensor])
    }

    fn deliver(&mut self, tensor: usize, grad: AnyTensor) -> Result<()> {
        self.sink.deliver(&self.edges[tensor], grad)
    }
}

/// One visit of a layer's node: what the generated `pull` works with.
#[doc(hidden)]
pub struct RawBackward<'a> {
    at: At<'a>,
    saved: Cell<Option<Reader<'a>>>,
    /// As in [`Pull`].
    wants_all: bool,
    came: Came<'a>,
    ways: RefCell<&'a mut dyn Onward>,
    barrier: Option<NodeRef>,
    /// The first error; what comes after it is left alone.
    broken: RefCell<Option<Error>>,
}

/// What [`Layer::pull`](super::Layer::pull) is.
pub(super) type Pulled = fn(&RawBackward<'_>, &Lent<'_>);

/// Runs a layer's backward: what forward saved is unpacked, and gradients come by the generated
/// `pull`. One function for all layers that save the same type.
pub(super) fn run<S: Saved>(raw: &RawBackward<'_>, pull: Pulled) -> Result<()> {
    let saved = &unpack::<S>(&raw.saved, &raw.at)?;
    pull(raw, &Lent { saved, attrs: raw.came.called.attrs(), needs: raw.needs() });
    raw.result()
}

impl RawBackward<'_> {
    /// Does this if nothing has gone wrong yet.
    #[inline]
    pub(super) fn unbroken(&self, then: impl FnOnce() -> Result<()>) {
        if self.broken.borrow().is_none()
            && let Err(error) = then()
        {
            self.broken.replace(Some(error));
        }
    }

    // Made here: with it comes the drop of all that a visit holds.
    #[inline(never)]
    fn needs(&self) -> &dyn NeedsGrad {
        self
    }

    fn result(&self) -> Result<()> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// The gradients of an output.
    pub fn gradient<O: TensorOutput>(&self, output: usize) -> Gradient<'_, O> {
        Gradient::new(&self.came, output)
    }

    /// Hands on what backward returned for input `group`.
    pub(super) fn deliver(&self, group: usize, grads: GradList) -> Result<()> {
        let (first, count) = self.came.called.group(group);
        if grads.len() != count {
            return Err(Error::GradientCount {
                op: self.at.op(),
                parameter: self.name(group, None),
                expected: count,
                found: grads.len(),
                location: self.at.location(),
            });
        }
        for (position, grad) in grads.into_iter().enumerate() {
            self.one(group, Some(position), first + position, grad)?;
        }
        Ok(())
    }

    /// The same for an input that is one tensor, or none.
    #[inline(always)]
    pub(super) fn deliver_one(&self, group: usize, grad: Option<AnyTensor>) -> Result<()> {
        match self.came.called.group(group) {
            (first, 1) => self.one(group, None, first, grad),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn one(
        &self,
        group: usize,
        position: Option<usize>,
        tensor: usize,
        grad: Option<AnyTensor>,
    ) -> Result<()> {
        if matches!(self.came.called.edges[tensor], Edge::None(_)) {
            return Ok(());
        }
        let mut ways = self.ways.borrow_mut();
        let wants = self.wants_all || ways.wants(tensor);
        let Some(mut grad) = grad else {
            return if wants { Err(self.missing(group, position)) } else { Ok(()) };
        };
        if !same(grad.shape(), self.came.shape(tensor)) {
            return Err(self.misshapen(group, position, tensor, &grad));
        }
        if !wants {
            return Ok(());
        }
        // What backward keeps a handle of it may change later.
        grad.unshare();
        if let Some(barrier) = &self.barrier {
            // One slot for each: gradients of different inputs are never summed.
            let slot = tensor as u32;
            grad = for_any!(grad, t => AnyTensor::from(t.attached(barrier.clone(), slot)));
        }
        ways.deliver(tensor, grad)
    }

    #[cold]
    fn missing(&self, group: usize, position: Option<usize>) -> Error {
        Error::GradientMissing {
            op: self.at.op(),
            parameter: self.name(group, position),
            location: self.at.location(),
        }
    }

    #[cold]
    fn misshapen(
        &self,
        group: usize,
        position: Option<usize>,
        tensor: usize,
        grad: &AnyTensor,
    ) -> Error {
        Error::GradientShape {
            op: self.at.op(),
            parameter: self.name(group, position),
            expected: self.came.shape(tensor).to_vec(),
            found: grad.shape().to_vec(),
            location: self.at.location(),
        }
    }

    fn name(&self, group: usize, position: Option<usize>) -> String {
        let name = self.came.called.rules.info.input_name(group).unwrap_or("an input");
        position.map_or_else(|| name.to_owned(), |position| format!("{name}[{position}]"))
    }

    /// Notes an error that the user's backward returned.
    pub(super) fn failed(&self, message: String) {
        let (op, location) = (self.at.op(), self.at.location());
        self.unbroken(|| Err(Error::User { op, function: "backward", message, location }));
    }
}

/// Which inputs want a gradient.
#[doc(hidden)]
pub trait NeedsGrad {
    /// One tensor.
    fn one(&self, group: usize) -> bool;
    /// A list of tensors.
    fn list(&self, group: usize) -> Vec<bool>;
}

impl NeedsGrad for RawBackward<'_> {
    fn one(&self, group: usize) -> bool {
        let (first, count) = self.came.called.group(group);
        count == 1 && self.wants(first)
    }

    fn list(&self, group: usize) -> Vec<bool> {
        let (first, count) = self.came.called.group(group);
        (first..first + count).map(|tensor| self.wants(tensor)).collect()
    }
}

impl RawBackward<'_> {
    fn wants(&self, tensor: usize) -> bool {
        let edge = &self.came.called.edges[tensor];
        !matches!(edge, Edge::None(_)) && (self.wants_all || self.ways.borrow().wants(tensor))
    }
}

/// Behind the gradients of an op that is differentiable once: it refuses. Each of them is an output of its
/// own, as they have shapes and element types of their own.
pub(super) struct Barrier;

impl Barrier {
    pub(super) fn record(
        op: &'static str,
        edges: &[Edge],
        grads: &Slots,
        location: &'static Location<'static>,
    ) -> NodeRef {
        let grads = grads.iter().flatten().map(|grad| for_any!(grad, t => t.edge()));
        let edges = edges.iter().map(Edge::again).chain(grads).collect();
        let state = State::new(Some(Arc::new(op)), Entries::new());
        NodeRef::record(&Self, edges, state, location)
    }
}

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
                  remove that argument of #[py_layer] if backward is made of differentiable ops"
                    .to_owned(),
        })
    }
}

impl Protector for LayerRules {
    fn layer(&self) -> &'static str {
        self.info.name
    }

    fn input(&self, position: usize) -> String {
        self.input_name(position)
    }
}
