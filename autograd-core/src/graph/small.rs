//! What stands in a node itself: an op of one or two small tensors, its edges and what it keeps. Backward
//! reads that where it stands, so it stays until the node goes.

use std::mem::{forget, replace};
use std::sync::atomic::{AtomicBool, Ordering};

use super::any::{AnyTensor, Element, for_any};
use super::lost::Lost;
use super::node::{Absent, Edge, Pull};
use super::saved::{At, input_name};
use super::tensor::Tensor;
use crate::error::{Error, Result};

/// A small op; nobody looks on when one is recorded.
pub(crate) struct Small {
    /// One word, which two would make the node too large.
    pub(crate) op: &'static &'static dyn SmallOp,
    pub(crate) edges: [Edge; 2],
    pub(crate) kept: Kept,
}

/// What is the same in all calls of a small op.
pub(crate) trait SmallOp: Sync {
    fn name(&self) -> &'static str;
    /// How many of the edges there are.
    fn inputs(&self) -> usize;
    /// In how many places tensors may be kept, if none are.
    fn shown(&self) -> usize {
        0
    }
    /// As [`Rule::pull`](super::node::Rule::pull), with the gradient of the only output.
    fn pull<'g>(&self, small: &'g Small, grad: AnyTensor, pull: &mut Pull<'_, 'g>) -> Result<()>;
}

/// That of a node which is not written yet.
struct Blank;

impl SmallOp for Blank {
    fn name(&self) -> &'static str {
        ""
    }

    fn inputs(&self) -> usize {
        0
    }

    fn pull<'g>(&self, _: &'g Small, _: AnyTensor, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
    }
}

/// Tensors, each in the place of its input, or a number. The second place of an op of one input is for its
/// output: a tensor of its own with the same value. At most one of them had been changed in place before:
/// `version` times, and `second` says which. There is no room for two versions.
pub(crate) enum Kept {
    Nothing,
    Number(f64),
    Float32 { tensors: [Maybe<f32>; 2], second: bool, version: u32 },
    Float64 { tensors: [Maybe<f64>; 2], second: bool, version: u32 },
}

/// An element type that can be kept so.
#[doc(hidden)]
pub(crate) trait Keepable: Element {
    /// Keeps tensors of these versions, of which one at least is 0.
    fn keep(tensors: [Maybe<Self>; 2], versions: [u32; 2]) -> Kept;
    /// What was kept.
    fn kept(kept: &Kept) -> &[Maybe<Self>; 2];
}

macro_rules! keepable {
    ($($t:ty, $variant:ident;)*) => {$(
        impl Keepable for $t {
            #[inline(always)]
            fn keep(tensors: [Maybe<Self>; 2], [first, second]: [u32; 2]) -> Kept {
                debug_assert!(first == 0 || second == 0);
                Kept::$variant { tensors, second: second != 0, version: first | second }
            }

            #[inline(always)]
            fn kept(kept: &Kept) -> &[Maybe<Self>; 2] {
                match kept {
                    Kept::$variant { tensors, .. } => tensors,
                    _ => const { &[Maybe(Tensor::NOWHERE), Maybe(Tensor::NOWHERE)] },
                }
            }
        }
    )*};
}

keepable! {
    f32, Float32;
    f64, Float64;
}

/// A place for a tensor, one word wide.
pub(crate) struct Maybe<T: Element>(Tensor<T>);

impl<T: Element> Maybe<T> {
    /// The tensor, if it is to be kept.
    #[inline(always)]
    pub(crate) fn of(tensor: &Tensor<T>, keep: bool) -> Self {
        Self(if keep { tensor.clone() } else { Tensor::NOWHERE })
    }

    /// The tensor, if there is one.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Tensor<T>> {
        self.0.is_somewhere().then_some(&self.0)
    }

    /// The tensor that a rule kept for itself.
    #[inline(always)]
    pub(crate) fn there(&self) -> &Tensor<T> {
        self.get().unwrap_or_else(|| unreachable!("it was kept for this rule"))
    }

    fn shown(&self) -> Option<AnyTensor> {
        self.get().map(|kept| T::wrap(kept.clone()))
    }
}

impl<T: Element> From<Option<Tensor<T>>> for Maybe<T> {
    #[inline(always)]
    fn from(tensor: Option<Tensor<T>>) -> Self {
        Self(tensor.unwrap_or(Tensor::NOWHERE))
    }
}

impl Small {
    pub(super) const BLANK: Self = {
        const OP: &dyn SmallOp = &Blank;
        const NONE: Edge = Edge::None(Absent { lost: Lost::NONE, seen: 0 });
        Self { op: &OP, edges: [NONE; 2], kept: Kept::Nothing }
    };

    #[inline]
    pub(super) fn blank_out(&mut self) {
        for edge in &mut self.edges {
            if !matches!(edge, Edge::None(_)) {
                *edge = Edge::None(Absent { lost: Lost::NONE, seen: 0 });
            }
        }
        if !matches!(self.kept, Kept::Nothing) {
            self.kept = Kept::Nothing;
        }
    }

    /// Writes an edge over that of a blank one, of which nothing is to be dropped.
    #[inline(always)]
    pub(crate) fn put_edge(&mut self, position: usize, edge: Edge) {
        forget(replace(&mut self.edges[position], edge));
    }

    /// The same of what is kept.
    #[inline(always)]
    pub(crate) fn put_kept(&mut self, kept: Kept) {
        forget(replace(&mut self.kept, kept));
    }

    #[inline]
    pub(super) fn edges(&self) -> &[Edge] {
        &self.edges[..self.op.inputs()]
    }

    #[inline(always)]
    pub(super) fn pull<'g>(
        &'g self,
        taken: &AtomicBool,
        grad: AnyTensor,
        pull: &mut Pull<'_, 'g>,
    ) -> Result<()> {
        if taken.load(Ordering::Relaxed) || self.is_changed() {
            self.check(taken, &pull.at())?;
        }
        if !pull.retain {
            // Two backwards at the same moment may both pass; each is a whole.
            taken.store(true, Ordering::Relaxed);
        }
        self.op.pull(self, grad, pull)
    }

    /// The tensors as backward would get them.
    pub(super) fn saved(&self, taken: &AtomicBool, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.check(taken, at)?;
        let [first, second] = match &self.kept {
            Kept::Nothing | Kept::Number(_) => return Ok(vec![None; self.op.shown()]),
            Kept::Float32 { tensors, .. } => tensors.each_ref().map(Maybe::shown),
            Kept::Float64 { tensors, .. } => tensors.each_ref().map(Maybe::shown),
        };
        let output = |kept: AnyTensor| for_any!(kept, t => t.attached(at.node.clone(), 0).into());
        Ok(match self.op.inputs() {
            1 => vec![first.or_else(|| second.map(output))],
            _ => vec![first, second],
        })
    }

    /// Of what is kept: as it was then, and as it is now.
    #[inline(always)]
    fn versions(&self) -> [[u32; 2]; 2] {
        fn of<T: Element>(kept: &[Maybe<T>; 2]) -> [u32; 2] {
            [kept[0].get().map_or(0, Tensor::version), kept[1].get().map_or(0, Tensor::version)]
        }
        let (second, version, found) = match &self.kept {
            Kept::Nothing | Kept::Number(_) => return [[0, 0]; 2],
            Kept::Float32 { tensors, second, version } => (*second, *version, of(tensors)),
            Kept::Float64 { tensors, second, version } => (*second, *version, of(tensors)),
        };
        [if second { [0, version] } else { [version, 0] }, found]
    }

    #[inline(always)]
    fn is_changed(&self) -> bool {
        let [saved, found] = self.versions();
        saved != found
    }

    #[cold]
    fn check(&self, taken: &AtomicBool, at: &At<'_>) -> Result<()> {
        if taken.load(Ordering::Relaxed) {
            return Err(Error::GraphFreed { op: at.op, location: at.location });
        }
        let [saved, found] = self.versions();
        for (position, (saved, found)) in (0..).zip(saved.into_iter().zip(found)) {
            at.check_version(saved, found, || input_name(position))?;
        }
        Ok(())
    }
}
