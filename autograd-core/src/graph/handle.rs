//! A tensor whose element type nobody asks for.

use std::mem::{forget, replace};
use std::panic::Location;

use super::any::{AnyTensor, Element};
use super::lost::Lost;
use super::node::{Blank, Edge, NodeRef};
use super::protect::protect;
use super::small::{Small, SmallCall, SmallOp};
use super::tensor::Tensor;
use crate::array::shape::same;

/// A tensor, lent, of whatever element type.
///
/// A function of `&dyn Handle` is compiled once, in the library; a function of `&Tensor<T>` is
/// compiled again in each crate that reaches it, for each `T`.
pub(crate) trait Handle {
    fn address(&self) -> *const ();
    fn shape(&self) -> &[usize];
    fn stop_gradient(&self) -> bool;
    fn has_producer(&self) -> bool;
    fn version(&self) -> u32;
    /// Protects this tensor, which is or is part of input `position` of a layer whose forward will run.
    fn protect(&self, layer: &'static &'static dyn SmallOp, position: usize);
    /// Begins the node of a call on this tensor, or on this one and a second.
    fn begin(
        &self,
        second: Option<&dyn Handle>,
        layer: &'static &'static dyn SmallOp,
        location: &'static Location<'static>,
    ) -> Begun;
    /// Writes the edge of an op on this tensor where it stays; the least level of its node.
    fn draw_edge(&self, blank: &mut Edge) -> u32;
    /// Keeps this tensor in a small node, if that has place for it.
    fn keep_in(&self, small: &mut Small) -> bool;
    /// Becomes the output of a small call, if it has the shape of the inputs; else the node comes back.
    fn end(&mut self, node: NodeRef, call: &SmallCall<'_>) -> Result<(), NodeRef>;
    /// What an op notes of an input.
    fn noted(&self) -> Noted<'_>;
    fn lost(&self) -> Lost;
    /// What a result of an op on this tensor has lost, if the op is not recorded.
    fn lost_by(&self, op: &'static str, at: &'static Location<'static>, derived: bool) -> Lost;
    /// The tensor itself.
    fn any(&self) -> AnyTensor;
    fn store_lost(&self, lost: Lost);
    fn store_stop_gradient(&self, stop: bool, place: &'static Location<'static>);
    /// Becomes a tensor of its own with the same value, outside the graph.
    fn become_alias(&mut self);
    /// Becomes the output `slot` of a node.
    fn attach(&mut self, node: NodeRef, slot: u32);
}

/// The node of a call on one or two tensors.
pub(crate) enum Begun {
    /// None: neither wants a gradient.
    Unrecorded,
    /// None yet: the call is not small.
    Large,
    /// A small one, with its edges. Its inputs are protected.
    Small(NodeRef),
}

/// What an op notes of an input.
pub(crate) struct Noted<'a> {
    pub(crate) address: *const (),
    pub(crate) edge: Edge,
    pub(crate) shape: &'a [usize],
}

impl<T: Element> Handle for Tensor<T> {
    fn address(&self) -> *const () {
        self.address()
    }

    fn shape(&self) -> &[usize] {
        self.shape()
    }

    fn stop_gradient(&self) -> bool {
        self.stop_gradient()
    }

    fn has_producer(&self) -> bool {
        self.producer().is_some()
    }

    fn version(&self) -> u32 {
        self.version()
    }

    fn protect(&self, layer: &'static &'static dyn SmallOp, position: usize) {
        protect(self, layer, position);
    }

    fn begin(
        &self,
        second: Option<&dyn Handle>,
        layer: &'static &'static dyn SmallOp,
        location: &'static Location<'static>,
    ) -> Begun {
        if self.stop_gradient() && second.is_none_or(|second| second.stop_gradient()) {
            return Begun::Unrecorded;
        }
        let alike = |second: &dyn Handle| same(second.shape(), self.shape());
        if !T::DTYPE.is_float() || !self.is_small() || !second.is_none_or(alike) {
            return Begun::Large;
        }
        let mut node = Blank::new(0, location);
        let [left, right] = &mut node.small().edges;
        let level = Handle::draw_edge(self, left);
        let level = level.max(second.map_or(0, |second| second.draw_edge(right)));
        node.raise(level);
        protect(self, layer, 0);
        if let Some(second) = second {
            second.protect(layer, 1);
        }
        Begun::Small(node.done())
    }

    fn keep_in(&self, small: &mut Small) -> bool {
        T::DTYPE.is_float() && self.is_small() && small.keep(T::wrap(self.clone()), self.version())
    }

    fn end(&mut self, mut node: NodeRef, call: &SmallCall<'_>) -> Result<(), NodeRef> {
        // One that forward changed in place may have changed after it was saved.
        if !T::DTYPE.is_float() || self.fixed().is_none() || !same(self.shape(), call.shape) {
            return Err(node);
        }
        if let Some(small) = node.small_mut() {
            small.op = call.op;
            small.mark_kept(call, self.address());
        }
        self.attach_unseen(node, 0);
        Ok(())
    }

    #[inline]
    fn draw_edge(&self, blank: &mut Edge) -> u32 {
        if let Some((node, slot)) = self.producer() {
            forget(replace(blank, Edge::Node(node.clone(), *slot)));
            return node.level + 1;
        }
        *blank = self.edge();
        0
    }

    fn noted(&self) -> Noted<'_> {
        Noted { address: self.address(), edge: self.edge(), shape: self.shape() }
    }

    fn lost(&self) -> Lost {
        self.lost()
    }

    fn lost_by(&self, op: &'static str, at: &'static Location<'static>, derived: bool) -> Lost {
        match derived {
            true => Lost::of(op, at, self),
            false => Lost::without_derivative(op, at, self),
        }
    }

    fn any(&self) -> AnyTensor {
        T::wrap(self.clone())
    }

    fn store_lost(&self, lost: Lost) {
        self.store_lost(lost);
    }

    fn store_stop_gradient(&self, stop: bool, place: &'static Location<'static>) {
        self.store_stop_gradient(stop, place);
    }

    fn become_alias(&mut self) {
        *self = self.alias();
    }

    fn attach(&mut self, node: NodeRef, slot: u32) {
        self.attach(node, slot);
    }
}
