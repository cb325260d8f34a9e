//! A tensor whose element type nobody asks for.

use std::panic::Location;

use super::any::{AnyTensor, Element};
use super::edge::Edge;
use super::lost::Lost;
use super::node::{NodeRef, Op};
use super::protect::protect;
use super::tensor::Tensor;

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
    fn protect(&self, layer: &'static dyn Op, position: usize);
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

    fn protect(&self, layer: &'static dyn Op, position: usize) {
        protect(self, layer, position);
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
