//! What is known of a call's inputs and outputs: which tensors they are, their shapes, where gradients go.

use smallvec::SmallVec;

use crate::array::Shape;
use crate::array::shape::{copied, same};
use crate::graph::{AnyTensor, Edge, Handle};

/// An input as `jvp` will see it, and its version.
pub(super) type Primal = (AnyTensor, u32);

/// What is noted of the inputs of a call that is recorded.
#[derive(Default)]
pub(super) struct Inputs {
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: SmallVec<[Edge; 2]>,
    /// Who is who while the call lasts.
    pub(super) addresses: Addresses,
    /// Input by input, then output by output.
    pub(super) layout: Layout,
    /// What `jvp` gets, where forward mode is on.
    pub(super) primals: Option<Box<[Primal]>>,
}

impl Inputs {
    /// Notes a tensor of a differentiable input.
    #[inline]
    pub(super) fn add(&mut self, group: u16, tensor: &dyn Handle) {
        self.addresses.add(tensor.address(), group);
        tensor.add_edge(&mut self.edges);
        self.layout.push_shape(tensor.shape());
    }
}

/// How many tensors each parameter has, and the shapes of all tensors, one after the other. Most calls have one
/// tensor a parameter, and one shape: then there are no lists.
#[derive(Default)]
pub(super) struct Layout {
    parameters: usize,
    tensors: usize,
    /// The shape of the first tensor.
    shape: Shape,
    /// How many tensors there are up to the end of each parameter, where one has none or several.
    ends: Vec<u32>,
    /// All shapes, where they differ.
    shapes: Vec<Shape>,
}

impl Layout {
    /// The next parameter has so many tensors.
    #[inline]
    pub(super) fn push_count(&mut self, count: u32) {
        if count != 1 || !self.ends.is_empty() {
            self.push_end(count);
        }
        self.parameters += 1;
    }

    #[cold]
    fn push_end(&mut self, count: u32) {
        if self.ends.is_empty() {
            self.ends.extend((1..).take(self.parameters));
        }
        let before = self.ends.last().copied().unwrap_or(0);
        self.ends.push(before + count);
    }

    #[inline(always)]
    pub(super) fn push_shape(&mut self, shape: &[usize]) {
        if self.tensors == 0 {
            self.shape = copied(shape);
        } else if !self.shapes.is_empty() || !same(&self.shape, shape) {
            self.push_other(shape);
        }
        self.tensors += 1;
    }

    #[cold]
    fn push_other(&mut self, shape: &[usize]) {
        if self.shapes.is_empty() {
            let alike = std::iter::repeat_with(|| copied(&self.shape));
            self.shapes.extend(alike.take(self.tensors));
        }
        self.shapes.push(copied(shape));
    }

    /// Position of a parameter's first tensor, and how many tensors it has.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        if self.ends.is_empty() {
            return (group, usize::from(group < self.parameters));
        }
        let end = |group: usize| self.ends.get(group).map(|&end| end as usize);
        let first = group.checked_sub(1).and_then(end).unwrap_or(0);
        (first, end(group).map_or(0, |end| end - first))
    }

    pub(super) fn groups(&self) -> usize {
        self.parameters
    }

    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> &[usize] {
        if self.shapes.is_empty() { &self.shape } else { &self.shapes[tensor] }
    }

    /// Whether each parameter is one tensor, all of one shape.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.ends.is_empty() && self.shapes.is_empty()
    }
}

/// Which tensors the inputs of a call are, while it lasts: by address, which is compared and never
/// followed, with the input that each belongs to.
#[derive(Default)]
pub(super) struct Addresses(SmallVec<[(usize, u16); 2]>);

impl Addresses {
    pub(super) fn add(&mut self, address: *const (), group: u16) {
        self.0.push((address.addr(), group));
    }

    /// The input that the tensor with this address is, or is part of.
    #[inline]
    pub(super) fn input(&self, address: *const ()) -> Option<u16> {
        self.0.iter().find(|(input, _)| *input == address.addr()).map(|&(_, group)| group)
    }
}
