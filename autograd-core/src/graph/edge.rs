//! Where the gradients of a node's inputs go.

use std::slice;

use smallvec::SmallVec;

use super::any::AnyTensor;
use super::lost::Lost;
use super::node::NodeRef;

/// Where the gradient of an input goes.
#[derive(Clone)]
pub(crate) enum Edge {
    /// Nowhere: the input wants none.
    None(Absent),
    /// To the first output of the op that produced the input.
    Node(NodeRef),
    /// To another output, by its slot. Few ops have several, so an edge has no place for it: it takes two
    /// words.
    Output(Box<(NodeRef, u32)>),
    /// To the leaf itself.
    Leaf(AnyTensor),
}

/// Where an edge leads.
pub(crate) enum To<'e> {
    None(&'e Absent),
    /// An output of a node, by its slot.
    Node(&'e NodeRef, u32),
    Leaf(&'e AnyTensor),
}

/// What is known of an input that wants no gradient.
#[derive(Clone, Copy)]
pub(crate) struct Absent {
    /// Why it wants none, though it was computed from what does.
    pub(crate) lost: Lost,
    /// The number of its range, where there is an observer; else 0.
    pub(crate) seen: u32,
}

impl Absent {
    /// Nothing is known.
    pub(crate) const UNSEEN: Self = Self { lost: Lost::NONE, seen: 0 };
}

impl Edge {
    /// To output `slot` of a node.
    #[inline]
    pub(crate) fn output(node: NodeRef, slot: u32) -> Self {
        if slot == 0 { Self::Node(node) } else { Self::Output(Box::new((node, slot))) }
    }

    /// Where it leads.
    #[inline]
    pub(crate) fn to(&self) -> To<'_> {
        match self {
            Self::None(absent) => To::None(absent),
            Self::Node(node) => To::Node(node, 0),
            Self::Output(output) => To::Node(&output.0, output.1),
            Self::Leaf(leaf) => To::Leaf(leaf),
        }
    }

    /// The node that it leads to.
    #[inline]
    pub(crate) fn node(&self) -> Option<&NodeRef> {
        match self.to() {
            To::Node(node, _) => Some(node),
            To::None(_) | To::Leaf(_) => None,
        }
    }

    /// The same edge, from one more node.
    pub(crate) fn again(&self) -> Self {
        if let Some(node) = self.node() {
            node.gets_consumer();
        }
        self.clone()
    }

    #[inline]
    pub(super) fn level(&self) -> u32 {
        self.node().map_or(0, |node| node.level + 1)
    }
}

/// The edges of a node. Most have one or two.
pub(crate) enum Edges {
    One(Edge),
    Two([Edge; 2]),
    Many(Box<[Edge]>),
}

impl Edges {
    pub(super) const NONE: Self = Self::One(Edge::None(Absent::UNSEEN));

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Edge] {
        match self {
            Self::One(edge) => slice::from_ref(edge),
            Self::Two(edges) => edges,
            Self::Many(edges) => edges,
        }
    }
}

impl FromIterator<Edge> for Edges {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Edge>>(edges: I) -> Self {
        Self::from(edges.into_iter().collect::<SmallVec<[Edge; 2]>>())
    }
}

impl From<SmallVec<[Edge; 2]>> for Edges {
    #[inline]
    fn from(edges: SmallVec<[Edge; 2]>) -> Self {
        match edges.into_inner() {
            Ok(two) => Self::Two(two),
            Err(mut edges) => match edges.len() {
                1 => edges.pop().map_or(Self::NONE, Self::One),
                _ => Self::Many(edges.into_vec().into()),
            },
        }
    }
}
