//! What the node of a layer does in backward: the same for all layers.

use std::any::Any;
use std::cell::RefCell;
use std::panic::Location;

use super::call::{Content, Edges};
use super::context::Lent;
use super::grads::{Came, GradList, Gradient};
use super::outputs::TensorOutput;
use super::saved::{self, Pack, Saved, Unpack};
use crate::array::shape::same;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, At, Edge, GradMode, NodeRef, Opened, Packing, Pull, Push, Rule, Sink, Slots, Visit,
    for_any,
};

/// The notes of a call are what it leaves in the graph.
impl Rule for Content {
    fn name(&self) -> &'static str {
        self.rules.info.name
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull<'g>(&'g self, mut grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let call = self;
        let (op, location, node) = (call.rules.info.name, pull.node.location, pull.node);
        let once = call.rules.info.once_differentiable;
        let create_graph = pull.create_graph && !once;
        // Backward may change them in place; nobody else shall see that.
        grads.iter_mut().flatten().for_each(AnyTensor::unshare);
        // Who made the gradients, for a node that refuses a second order.
        let barrier = once && pull.create_graph;
        let barrier = barrier.then(|| Barrier::record(call, &grads, location));
        let mut ways = Ways { edges: &call.edges, sink: &mut *pull.sink };
        let raw = RawBackward {
            layer: call,
            at: At { op, location, node, create_graph },
            retain: pull.retain,
            came: Came::new(call, grads),
            ways: RefCell::new(&mut ways),
            barrier,
            broken: RefCell::new(None),
        };
        if once {
            let _off = GradMode::set(false);
            return (call.rules.run)(&raw, call.rules.pull);
        }
        (call.rules.run)(&raw, call.rules.pull)
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

/// Shows the places of what a call saved.
pub(super) fn visit(call: &Content) -> impl Fn(&mut Pack, &mut Visit<'_>) -> Result<()> + use<> {
    let info = &call.rules.info;
    move |saved, visit| saved::visit(saved, info, visit)
}

/// What forward saved, as its declared type.
pub(super) fn unpack<S: Saved>(layer: &Content, kept: &mut Pack, at: &At<'_>) -> Result<S> {
    S::unpack(&mut Unpack { kept, next: 0, at: At { ..*at }, info: &layer.rules.info, position: 0 })
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
    layer: &'a Content,
    at: At<'a>,
    /// Keep what was saved for another backward.
    retain: bool,
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
    let saved = raw.saved::<S>()?;
    pull(raw, &Lent { saved: &saved, attrs: raw.attrs(), needs: raw.needs() });
    raw.result()
}

impl RawBackward<'_> {
    /// Does this if nothing has gone wrong yet.
    pub(super) fn unbroken(&self, then: impl FnOnce() -> Result<()>) {
        if self.broken.borrow().is_none()
            && let Err(error) = then()
        {
            self.broken.replace(Some(error));
        }
    }

    /// What forward saved.
    fn saved<S: Saved>(&self) -> Result<S> {
        unpack(self.layer, self.open()?.get(), &self.at)
    }

    // A call, so that a crate of ops does not compile it again.
    #[inline(never)]
    fn open(&self) -> Result<Opened<'_, Pack>> {
        self.layer.saved.open(self.retain, &self.at, &visit(self.layer))
    }

    fn attrs(&self) -> &dyn Any {
        self.layer.attrs()
    }

    // Made here: with it comes what lets go of all that a visit holds.
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
        let (first, count) = self.layer.layout.group(group);
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
    pub(super) fn deliver_one(&self, group: usize, grad: Option<AnyTensor>) -> Result<()> {
        match self.layer.layout.group(group) {
            (first, 1) => self.one(group, None, first, grad),
            _ => Ok(()),
        }
    }

    fn one(
        &self,
        group: usize,
        position: Option<usize>,
        tensor: usize,
        grad: Option<AnyTensor>,
    ) -> Result<()> {
        let edge = &self.layer.edges[tensor];
        let mut ways = self.ways.borrow_mut();
        if matches!(edge, Edge::None(_)) {
            return Ok(());
        }
        let Some(mut grad) = grad else {
            if !ways.wants(tensor) {
                return Ok(());
            }
            return Err(Error::GradientMissing {
                op: self.at.op,
                parameter: self.name(group, position),
                location: self.at.location,
            });
        };
        let expected = self.layer.layout.shape(tensor);
        if !same(grad.shape(), expected) {
            return Err(Error::GradientShape {
                op: self.at.op,
                parameter: self.name(group, position),
                expected: expected.to_vec(),
                found: grad.shape().to_vec(),
                location: self.at.location,
            });
        }
        if !ways.wants(tensor) {
            return Ok(());
        }
        if let Some(barrier) = &self.barrier {
            grad = for_any!(grad, t => AnyTensor::from(t.attached(barrier.clone(), 0)));
        }
        ways.deliver(tensor, grad)
    }

    fn name(&self, group: usize, position: Option<usize>) -> String {
        let name = self.layer.rules.info.input_name(group).unwrap_or("an input");
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
        let (first, count) = self.layer.layout.group(group);
        count == 1 && self.wants(first)
    }

    fn list(&self, group: usize) -> Vec<bool> {
        let (first, count) = self.layer.layout.group(group);
        (first..first + count).map(|tensor| self.wants(tensor)).collect()
    }
}

impl RawBackward<'_> {
    fn wants(&self, tensor: usize) -> bool {
        let edge = &self.layer.edges[tensor];
        !matches!(edge, Edge::None(_)) && self.ways.borrow().wants(tensor)
    }
}

/// Behind the gradients of an op that is differentiable once: it refuses.
pub(super) struct Barrier {
    op: &'static str,
    edges: Edges,
}

impl Barrier {
    pub(super) fn record(
        layer: &Content,
        grads: &Slots,
        location: &'static Location<'static>,
    ) -> NodeRef {
        let mut edges: Edges = layer.edges.iter().map(Edge::again).collect();
        edges.extend(grads.iter().flatten().map(|grad| for_any!(grad, t => t.edge())));
        NodeRef::record(Self { op: layer.rules.info.name, edges }, location)
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
