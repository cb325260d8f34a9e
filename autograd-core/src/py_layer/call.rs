//! The data of a layer's call (inputs, outputs, saved tensors, attributes), and how a node stores it.

use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::inputs::{Info, TensorInput};
use super::outputs::Visitor;
use super::saved::Pack;
use crate::array::Shape;
use crate::array::shape::{copied, same};
use crate::graph::{AnyTensor, Edge, Handle, NodeRef, Op, Plain, Role, Saved, SavedTensor, State};

/// An input for `jvp`, and its version.
pub(super) type Primal = (AnyTensor, u32);

pub(super) type Attrs = Option<Box<dyn Any + Send + Sync>>;

#[derive(Default)]
pub(super) struct Call {
    given: SmallVec<[Given; 2]>,
    pub(super) saved: Pack,
    /// The inputs for `jvp`, if forward mode is on.
    primals: Option<Box<[Primal]>>,
}

struct Given {
    /// Only compared, never dereferenced.
    address: *const (),
    input: u16,
    /// The edge of its gradient; `None` if the input is not differentiated.
    edge: Option<Edge>,
}

/// Node data beside saved tensors. A call of single tensors of one shape without attributes needs none.
struct Notes {
    /// The number of tensors up to the end of each parameter: first the inputs, then the outputs.
    ends: Vec<u32>,
    shapes: Vec<Shape>,
    attrs: Attrs,
    primals: Option<Box<[Primal]>>,
}

impl Call {
    #[inline]
    pub(super) fn add(&mut self, position: usize, tensor: &dyn Handle, differentiable: bool) {
        self.given.push(Given {
            address: tensor.address(),
            input: u16::try_from(position).unwrap_or(u16::MAX),
            edge: differentiable.then(|| tensor.edge()),
        });
    }

    pub(super) fn keep_primals(&mut self, info: &Info, inputs: &[&dyn TensorInput]) {
        let mut primals = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            if info.is_differentiable(position) {
                input.each(&mut |tensor| primals.push((tensor.any(), tensor.version())));
            }
        }
        self.primals = Some(primals.into());
    }

    /// Records the call, whose forward returned `outputs`; those that are `marked` are not differentiable.
    pub(super) fn record(
        &mut self,
        op: &'static dyn Op,
        (info, inputs): (&Info, &[&dyn TensorInput]),
        attrs: Attrs,
        (outputs, marked): (&Visitor<'_>, &[AnyTensor]),
        location: &'static Location<'static>,
    ) -> NodeRef {
        self.assign_roles(outputs, marked);
        let is_plain = attrs.is_none() && self.primals.is_none() && self.is_plain(inputs, outputs);
        let notes = (!is_plain).then(|| {
            let primals = self.primals.take();
            let mut notes = Notes { ends: Vec::new(), shapes: Vec::new(), attrs, primals };
            for (position, input) in inputs.iter().enumerate() {
                if info.is_differentiable(position) {
                    input.each(&mut |tensor| notes.shapes.push(copied(tensor.shape())));
                }
                notes.ends.push(notes.shapes.len() as u32);
            }
            let (tensors, ends) = outputs.all();
            let inputs = notes.shapes.len() as u32;
            notes.shapes.extend(tensors.iter().map(|tensor| copied(tensor.shape())));
            notes.ends.extend(ends.map(|end| inputs + end));
            Arc::new(notes) as Plain
        });
        let edges = self.given.iter_mut().filter_map(|given| given.edge.take()).collect();
        NodeRef::record(op, edges, State::new(notes, &mut self.saved.0), location)
    }

    /// Finds the role of each saved tensor. An input, or an output without a gradient, is saved as it is; of
    /// another output only the value is, as the output holds the node and the node must not hold the output.
    fn assign_roles(&mut self, outputs: &Visitor<'_>, marked: &[AnyTensor]) {
        for saved in &mut self.saved.0 {
            let Saved::Tensor(SavedTensor { tensor, version, role }) = saved else { continue };
            let address = tensor.address();
            if let Some(given) = self.given.iter().find(|given| given.address == address) {
                *role = Role::Input(given.input);
                continue;
            }
            let Some(slot) = outputs.position(address) else { continue };
            if marked.iter().any(|marked| marked.address() == address) {
                *role = Role::Constant;
                continue;
            }
            // Beyond the range of a slot, an intermediate.
            *role = u16::try_from(slot).map_or(Role::Intermediate, Role::Output);
            // Not zero if forward changed the output after saving it.
            *version = tensor.version().abs_diff(*version);
            *tensor = tensor.saved_output();
        }
    }

    /// Whether each input, and the output, is a single differentiable tensor, and all have one shape.
    fn is_plain(&self, inputs: &[&dyn TensorInput], outputs: &Visitor<'_>) -> bool {
        let Some(output) = outputs.only() else { return false };
        let is_one = |(position, given): (usize, &Given)| {
            position == usize::from(given.input) && given.edge.is_some()
        };
        let mut is_plain =
            self.given.len() == inputs.len() && self.given.iter().enumerate().all(is_one);
        for input in inputs {
            input.each(&mut |tensor| is_plain &= same(tensor.shape(), output.shape()));
        }
        is_plain
    }
}

#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) info: &'a Info,
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: &'a [Edge],
    notes: Option<&'a Notes>,
}

impl<'a> Called<'a> {
    pub(super) fn of(info: &'a Info, node: &'a NodeRef) -> Self {
        Self { info, edges: node.edges(), notes: node.attrs() }
    }

    /// The first tensor of a parameter, by position, and its number of tensors. Outputs follow the inputs.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        let Some(notes) = self.notes else { return (group, 1) };
        let end = |group: usize| notes.ends.get(group).map(|&end| end as usize);
        let first = group.checked_sub(1).and_then(end).unwrap_or(0);
        (first, end(group).map_or(0, |end| end - first))
    }

    pub(super) fn outputs(&self) -> usize {
        self.notes.map_or(1, |notes| notes.ends.len() - self.info.inputs)
    }

    pub(super) fn output_tensors(&self) -> usize {
        self.notes.map_or(1, |notes| notes.shapes.len() - self.edges.len())
    }

    /// The shape of a tensor; `None` if all tensors have the same.
    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> Option<&'a [usize]> {
        self.notes.map(|notes| &notes.shapes[tensor][..])
    }

    pub(super) fn attrs(&self) -> &'a dyn Any {
        self.notes.and_then(|notes| notes.attrs.as_deref()).map_or(&(), |attrs| attrs)
    }

    pub(super) fn primals(&self) -> Option<&'a [Primal]> {
        self.notes?.primals.as_deref()
    }
}
