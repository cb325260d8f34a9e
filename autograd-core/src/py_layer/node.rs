//! What the node of a layer does in backward: the same for all layers.

use std::any::Any;
use std::cell::RefCell;
use std::panic::Location;

use super::call::{Content, Edges};
use super::context::Lent;
use super::grads::{Came, GradList, Gradient};
use super::info::Info;
use super::outputs::TensorOutput;
use super::rules::LayerRules;
use super::saved::{self, List, Role, Saved, Source, Unpack};
use crate::array::shape::same;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Edge, Element, GradMode, Kept, NodeRef, Opened, Packing, Pull, Push, Rule, Sink,
    Slots, Tensor, Visit, for_any,
};

/// The notes of a call are what it leaves in the graph.
impl Rule for Content {
    fn name(&self) -> &'static str {
        self.rules.info.name
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let called = Called { rules: self.rules, edges: &self.edges, notes: Notes::Full(self) };
        pull_through(called, &self.edges, grads, pull)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        self.push_tangents(push)
    }

    fn has_jvp(&self) -> bool {
        self.rules.push.is_some()
    }

    fn pack(&mut self, packing: &Packing<'_>) {
        let visit = visit(self);
        self.saved.pack(packing, &visit);
    }

    fn leave(self: Box<Self>) {
        self.give_back();
    }

    fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.saved.show(at, &visit(self))
    }
}

/// What a visit knows of the call.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) rules: &'a LayerRules,
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: &'a [Edge],
    pub(super) notes: Notes<'a>,
}

/// Where a call left the rest.
#[derive(Clone, Copy)]
pub(super) enum Notes<'a> {
    Full(&'a Content),
    /// In a small node: what is kept there. Each input and output is one tensor, and all have the shape of
    /// the gradient that comes.
    Inline(&'a Kept),
}

impl<'a> Called<'a> {
    /// Position of the first tensor of an input or, counted after these, an output, and how many tensors
    /// it has.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        match self.notes {
            Notes::Full(call) => call.layout.group(group),
            Notes::Inline(_) => (group, 1),
        }
    }

    fn attrs(&self) -> &'a dyn Any {
        match self.notes {
            Notes::Full(call) => call.attrs(),
            Notes::Inline(_) => &(),
        }
    }
}

/// Calls a layer's backward, and hands on what it returns.
// Not a call: the gradients would be moved, and read wider than they were written.
#[inline(always)]
pub(super) fn pull_through<'g>(
    called: Called<'_>,
    edges: &'g [Edge],
    mut grads: Slots,
    pull: &mut Pull<'_, 'g>,
) -> Result<()> {
    let rules = called.rules;
    let (op, location, node) = (rules.info.name, pull.node.location, pull.node);
    let once = rules.info.once_differentiable;
    let create_graph = pull.create_graph && !once;
    // Who made the gradients, for a node that refuses a second order.
    let barrier = once && pull.create_graph;
    let barrier = barrier.then(|| Barrier::record(op, edges, &grads, location));
    let _off = once.then(|| GradMode::set(false));
    // Backward may change them in place; nobody else shall see that.
    grads.iter_mut().flatten().for_each(AnyTensor::unshare);
    let mut ways = Ways { edges, sink: &mut *pull.sink };
    let raw = RawBackward {
        at: At { op, location, node, create_graph },
        retain: pull.retain,
        wants_all: pull.wants_all,
        came: Came::new(called, grads),
        ways: RefCell::new(&mut ways),
        barrier,
        broken: RefCell::new(None),
    };
    (rules.run)(&raw, rules.pull)
}

/// Shows the places of what a call saved.
pub(super) fn visit(call: &Content) -> impl Fn(&mut List, &mut Visit<'_>) -> Result<()> + use<> {
    let info = &call.rules.info;
    move |saved, visit| saved::visit(saved, info, visit)
}

/// What forward saved, as its declared type.
pub(super) fn unpack<S: Saved>(layer: &Content, kept: &mut List, at: &At<'_>) -> Result<S> {
    unpack_from(Source::List(kept), &layer.rules.info, at)
}

fn unpack_from<S: Saved>(kept: Source<'_>, info: &Info, at: &At<'_>) -> Result<S> {
    S::unpack(&mut Unpack { kept, next: 0, at: At { ..*at }, info, position: 0 })
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
    /// Keep what was saved for another backward.
    retain: bool,
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
    let taken;
    let saved = match S::lent(raw) {
        Some(saved) => saved,
        None => {
            taken = raw.saved::<S>()?;
            &taken
        }
    };
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

    /// What forward saved.
    fn saved<S: Saved>(&self) -> Result<S> {
        let info = &self.came.called.rules.info;
        match self.came.called.notes {
            Notes::Full(call) => unpack_from(Source::List(self.open(call)?.get()), info, &self.at),
            Notes::Inline(kept) => unpack_from(Source::Inline(kept), info, &self.at),
        }
    }

    // A call, so that a crate of ops does not compile it again.
    #[inline(never)]
    fn open<'c>(&self, call: &'c Content) -> Result<Opened<'c, List>> {
        call.saved.open(self.retain, &self.at, &visit(call))
    }

    /// The only tensor that forward saved, if it stands in the node as backward gets it.
    pub(super) fn lent<T: Element>(&self) -> Option<&Tensor<T>> {
        let Notes::Inline(kept) = self.came.called.notes else { return None };
        let (tensor, mark) = kept.first()?;
        Role::of_mark(mark).is_kept_as_it_is(&self.at).then_some(tensor)
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
                op: self.at.op,
                parameter: self.name(group, None),
                expected: count,
                found: grads.len(),
                location: self.at.location,
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
            op: self.at.op,
            parameter: self.name(group, position),
            location: self.at.location,
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
            op: self.at.op,
            parameter: self.name(group, position),
            expected: self.came.shape(tensor).to_vec(),
            found: grad.shape().to_vec(),
            location: self.at.location,
        }
    }

    fn name(&self, group: usize, position: Option<usize>) -> String {
        let name = self.came.called.rules.info.input_name(group).unwrap_or("an input");
        position.map_or_else(|| name.to_owned(), |position| format!("{name}[{position}]"))
    }

    /// Notes an error that the user's backward returned.
    pub(super) fn failed(&self, message: String) {
        let (op, location) = (self.at.op, self.at.location);
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
pub(super) struct Barrier {
    op: &'static str,
    edges: Edges,
}

impl Barrier {
    pub(super) fn record(
        op: &'static str,
        edges: &[Edge],
        grads: &Slots,
        location: &'static Location<'static>,
    ) -> NodeRef {
        let mut edges: Edges = edges.iter().map(Edge::again).collect();
        edges.extend(grads.iter().flatten().map(|grad| for_any!(grad, t => t.edge())));
        NodeRef::record(Self { op, edges }, location)
    }
}

impl Rule for Barrier {
    fn name(&self) -> &'static str {
        self.op
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull<'g>(&'g self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Err(Error::Unsupported {
            op: self.op,
            why:
                "its backward is `once_differentiable`: there is no second derivative through it; \
                  remove that argument of #[py_layer] if backward is made of differentiable ops"
                    .to_owned(),
        })
    }
}
