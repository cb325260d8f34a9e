//! What the node of a layer does in backward: the same for all layers.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

use super::barrier::Barrier;
use super::called::Called;
use super::context::Lent;
use super::fallible::Fallible;
use super::grads::{Came, Entries, GradEntries, GradFor, GradList, GradSink, Gradient, GradsFor};
use super::inputs::NeedsGrad;
use super::outputs::TensorOutput;
use super::saved::{Saved, unpack};
use crate::array::shape::same;
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, At, Edge, GradMode, NodeRef, Pull, Reader, Sink, Slots, for_any};

/// Calls a layer's backward, and hands on what it returns.
pub(super) fn pull_through(
    called: Called<'_>,
    (run, backward): (fn(&RawBackward<'_>, Pulled) -> Result<()>, Pulled),
    mut grads: Slots,
    pull: &mut Pull<'_, '_>,
) -> Result<()> {
    let info = called.info;
    let (op, location, node) = (info.name, pull.node.location, pull.node);
    let edges = node.edges();
    let once = info.once_differentiable;
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
    run(&raw, backward)
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

    fn wants(&self, tensor: usize) -> bool {
        let edge = &self.came.called.edges[tensor];
        !matches!(edge, Edge::None(_)) && (self.wants_all || self.ways.borrow().wants(tensor))
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
            self.hand_on(group, Some(position), first + position, grad)?;
        }
        Ok(())
    }

    /// The same for an input that is one tensor, or none.
    #[inline(always)]
    pub(super) fn deliver_one(&self, group: usize, grad: Option<AnyTensor>) -> Result<()> {
        match self.came.called.group(group) {
            (first, 1) => self.hand_on(group, None, first, grad),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn hand_on(
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
        let name = self.came.called.info.input_name(group).unwrap_or("an input");
        position.map_or_else(|| name.to_owned(), |position| format!("{name}[{position}]"))
    }

    /// Notes an error that the user's backward returned.
    pub(super) fn failed(&self, message: String) {
        let (op, location) = (self.at.op(), self.at.location());
        self.unbroken(|| Err(Error::User { op, function: "backward", message, location }));
    }
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
    /// What backward returned for input `group`.
    pub fn give<I: ?Sized, G: GradFor<I>>(&self, group: usize, grad: G) {
        grad.hand_to(self, group);
    }

    /// What backward returned for all inputs, where the macro could not see the parts.
    pub fn give_all<I, G: GradsFor<I>>(&self, grads: G, groups: &[usize]) {
        grads.give(self, groups);
    }

    /// What backward returned, unless it is an error.
    pub fn user<R: Fallible<Error: Display>>(&self, returned: R) -> Option<R::Output> {
        returned.result().map_err(|error| self.failed(error.to_string())).ok()
    }
}

impl GradSink for RawBackward<'_> {
    fn one(&self, group: usize, grad: AnyTensor) {
        self.unbroken(|| self.deliver_one(group, Some(grad)));
    }

    fn entries(&self, group: usize, grads: GradEntries) {
        self.unbroken(|| match grads.0 {
            Entries::One(grad) => self.deliver_one(group, grad),
            Entries::List(grads) => self.deliver(group, grads),
        });
    }
}
