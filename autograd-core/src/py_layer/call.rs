//! What one call of a layer notes: where gradients go, shapes, what was saved. It is written where
//! it stays, in memory that an earlier call left, and is the rule of the node.

use std::any::Any;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use smallvec::SmallVec;

#[cfg(not(feature = "verify"))]
use super::environment;
use super::forward_mode::Primal;
use super::rules::LayerRules;
use super::saved::List;
use crate::array::Shape;
use crate::array::shape::{assign, copied, same};
use crate::error::Error;
use crate::graph::{Edge, NodeRef, Noted, State};

/// The edges of a layer's node.
pub(super) type Edges = SmallVec<[Edge; 2]>;

/// The notes of one call.
pub(super) struct Content {
    pub(super) rules: &'static LayerRules,
    /// One for each tensor of the differentiable inputs.
    pub(super) edges: Edges,
    /// Who is who while the call lasts.
    pub(super) addresses: Addresses,
    /// Input by input, then output by output.
    pub(super) layout: Layout,
    pub(super) saved: State<List>,
    pub(super) attrs: Option<Box<dyn Any + Send + Sync>>,
    /// What `jvp` gets, where forward mode is on.
    pub(super) inputs: Option<Box<[Primal]>>,
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
    ends: SmallVec<[u32; 8]>,
    /// All shapes, where they differ.
    shapes: SmallVec<[Shape; 4]>,
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
            assign(&mut self.shape, shape);
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

    /// How many inputs and outputs.
    pub(super) fn groups(&self) -> usize {
        self.parameters
    }

    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> &[usize] {
        if self.shapes.is_empty() { &self.shape } else { &self.shapes[tensor] }
    }

    fn clear(&mut self) {
        (self.parameters, self.tensors) = (0, 0);
        self.ends.clear();
        if !self.shapes.is_empty() {
            self.shapes.clear();
        }
    }

    /// Whether a list is longer than what stands in place.
    fn spilled(&self) -> bool {
        self.shape.spilled() || self.ends.spilled() || self.shapes.spilled()
    }
}

/// Which tensors the inputs of a call are, while it lasts: by address, which is compared and never
/// followed, with the input that each belongs to.
#[derive(Default)]
pub(super) struct Addresses(SmallVec<[(usize, u16); 4]>);

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

impl Content {
    fn new(rules: &'static LayerRules) -> Self {
        Self {
            rules,
            edges: Edges::default(),
            addresses: Addresses::default(),
            layout: Layout::default(),
            saved: State::default(),
            attrs: None,
            inputs: None,
        }
    }

    /// Notes a tensor of a differentiable input.
    #[inline]
    pub(super) fn add_input(&mut self, group: u16, noted: Noted<'_>) {
        self.addresses.add(noted.address, group);
        self.edges.push(noted.edge);
        self.layout.push_shape(noted.shape);
    }

    /// What forward set beside tensors.
    pub(super) fn attrs(&self) -> &dyn Any {
        match self.attrs.as_deref() {
            Some(attrs) => attrs,
            None => &(),
        }
    }

    /// Leaves the memory to the next call of the thread.
    pub(super) fn give_back(mut self: Box<Self>) {
        self.clear();
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < KEPT {
                spares.push(self);
            }
        });
    }

    /// Drops what is held, keeps the memory.
    fn clear(&mut self) {
        if self.spilled() {
            *self = Self::new(self.rules);
            return;
        }
        self.edges.clear();
        self.addresses.0.clear();
        self.layout.clear();
        self.saved.clear();
        if self.attrs.is_some() || self.inputs.is_some() {
            self.attrs = None;
            self.inputs = None;
        }
    }

    /// Whether a list is longer than what stands in place.
    fn spilled(&self) -> bool {
        self.edges.spilled() || self.addresses.0.spilled() || self.layout.spilled()
    }
}

/// The notes of a call that is on; dropped, they leave their memory to the next one of the thread.
pub(super) struct Call(
    // `None` only once the node has it, and while it is dropped.
    Option<Box<Content>>,
);

/// How many a thread keeps, of less than half a KiB each.
const KEPT: usize = 1024;

thread_local! {
    // Boxes on purpose: a call takes one as it is.
    #[allow(clippy::vec_box, reason = "the contents move as boxes")]
    static SPARES: RefCell<Vec<Box<Content>>> = const { RefCell::new(Vec::new()) };
}

impl Call {
    /// # Errors
    ///
    /// Where the environment asks for what this build cannot do. A thread's first call finds that out,
    /// and as long as none succeeds, there is no spare.
    pub(super) fn new(rules: &'static LayerRules) -> Result<Self, Box<Error>> {
        // A thread that is ending has no spares any more.
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
        let Some(mut content) = spare else {
            #[cfg(not(feature = "verify"))]
            environment::refuse(rules.info.name)?;
            return Ok(Self(Some(Box::new(Content::new(rules)))));
        };
        content.rules = rules;
        Ok(Self(Some(content)))
    }
}

impl Call {
    /// The node of the call.
    pub(super) fn record(mut self, location: &'static Location<'static>) -> NodeRef {
        match self.0.take() {
            Some(content) => NodeRef::record_boxed(content, location),
            None => unreachable!("only this takes it out"),
        }
    }
}

impl Deref for Call {
    type Target = Content;

    fn deref(&self) -> &Content {
        self.0.as_ref().unwrap_or_else(|| unreachable!("only drop takes it out"))
    }
}

impl DerefMut for Call {
    fn deref_mut(&mut self) -> &mut Content {
        self.0.as_mut().unwrap_or_else(|| unreachable!("only drop takes it out"))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(content) = self.0.take() {
            content.give_back();
        }
    }
}
