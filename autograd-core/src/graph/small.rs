//! What stands in a node itself: an op of one or two small tensors, its edges and what it keeps. Backward
//! reads that where it stands, so it stays until the node goes.

use std::any::Any;
use std::mem::{forget, replace};
use std::sync::atomic::{AtomicBool, Ordering};

use super::any::{AnyTensor, Element, for_any};
use super::lost::Lost;
use super::node::{Absent, Edge, Pull};
use super::saved::{At, input_name};
use super::tensor::Tensor;
use crate::error::{Error, Result};

/// A small op; there is no observer when one is recorded.
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
    /// What errors call an input.
    fn input_name(&self, input: usize) -> String {
        format!("input {input}")
    }
    /// In how many places tensors may be kept, if none are.
    fn shown(&self) -> usize {
        0
    }
    /// As [`Rule::has_jvp`](super::node::Rule::has_jvp).
    fn has_jvp(&self) -> bool {
        false
    }
    /// What errors call the tensor that is kept in this place.
    fn kept_name(&self, _kept: &Kept, place: usize) -> String {
        input_name(place)
    }
    /// The kept tensors as backward would get them, where what their places mean is the op's own
    /// affair.
    fn saved(&self, _small: &Small, _at: &At<'_>) -> Result<Option<Vec<Option<AnyTensor>>>> {
        Ok(None)
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
/// output: a tensor of its own with the same value. In the order in which they were saved where the `marks` of
/// a layer say what each is. At most one of them had been changed in place before: `version` times, and
/// `second` says which. There is no room for two versions.
pub(crate) enum Kept {
    Nothing,
    Number(f64),
    Float32 { tensors: [Maybe<f32>; 2], second: bool, version: u32, marks: Marks },
    Float64 { tensors: [Maybe<f64>; 2], second: bool, version: u32, marks: Marks },
}

/// What a tensor that is kept is to the layer which kept it.
#[derive(Clone, Copy, Default)]
pub(crate) enum Mark {
    /// Neither input nor output.
    #[default]
    Other,
    /// The first input.
    First,
    Second,
    Output,
}

pub(crate) type Marks = [Mark; 2];

/// A call of a layer whose forward is done.
pub(crate) struct SmallCall<'a> {
    pub(crate) op: &'static &'static dyn SmallOp,
    /// The shape of the inputs.
    pub(crate) shape: &'a [usize],
    /// Their addresses; null where there is no second one.
    pub(crate) inputs: [*const (); 2],
}

impl Kept {
    /// A tensor that is kept, its version then, and its mark.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<(AnyTensor, u32, Mark)> {
        let (tensor, second, version, marks) = match self {
            Self::Nothing | Self::Number(_) => return None,
            Self::Float32 { tensors, second, version, marks } => {
                (tensors.get(place)?.shown(), second, version, marks)
            }
            Self::Float64 { tensors, second, version, marks } => {
                (tensors.get(place)?.shown(), second, version, marks)
            }
        };
        let version = if *second == (place == 1) { *version } else { 0 };
        Some((tensor?, version, marks[place]))
    }

    /// The first of the tensors, where it stands, if it has such elements, and its mark.
    #[inline]
    pub(crate) fn first<T: Element>(&self) -> Option<(&Tensor<T>, Mark)> {
        let (tensor, marks): (&dyn Any, _) = match self {
            Self::Nothing | Self::Number(_) => return None,
            Self::Float32 { tensors, marks, .. } => (tensors[0].get()?, marks),
            Self::Float64 { tensors, marks, .. } => (tensors[0].get()?, marks),
        };
        Some((tensor.downcast_ref()?, marks[0]))
    }
}

/// An element type that can be kept so.
#[doc(hidden)]
pub(crate) trait Keepable: Element {
    /// Keeps tensors of these versions, of which one at least is 0.
    fn keep(tensors: [Maybe<Self>; 2], versions: [u32; 2], marks: Marks) -> Kept;
    /// What was kept.
    fn kept(kept: &Kept) -> &[Maybe<Self>; 2];
    /// The same to be changed, with `second` and `version`.
    fn places(kept: &mut Kept) -> Option<(&mut [Maybe<Self>; 2], &mut bool, &mut u32)>;
}

macro_rules! keepable {
    ($($t:ty, $variant:ident;)*) => {$(
        impl Keepable for $t {
            #[inline(always)]
            fn keep(
                tensors: [Maybe<Self>; 2],
                [first, second]: [u32; 2],
                marks: Marks,
            ) -> Kept {
                debug_assert!(first == 0 || second == 0);
                Kept::$variant { tensors, second: second != 0, version: first | second, marks }
            }

            #[inline(always)]
            fn kept(kept: &Kept) -> &[Maybe<Self>; 2] {
                match kept {
                    Kept::$variant { tensors, .. } => tensors,
                    _ => const { &[Maybe::NOTHING, Maybe::NOTHING] },
                }
            }

            #[inline(always)]
            fn places(kept: &mut Kept) -> Option<(&mut [Maybe<Self>; 2], &mut bool, &mut u32)> {
                match kept {
                    Kept::$variant { tensors, second, version, .. } => {
                        Some((tensors, second, version))
                    }
                    _ => None,
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
    const NOTHING: Self = Self(Tensor::NOWHERE);

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
    pub(crate) const BLANK: Self = {
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

    /// Keeps one tensor more, if there is place for it.
    #[inline]
    pub(crate) fn keep(&mut self, tensor: AnyTensor, version: u32) -> bool {
        match tensor {
            AnyTensor::Float32(tensor) => self.keep_typed(tensor, version),
            AnyTensor::Float64(tensor) => self.keep_typed(tensor, version),
            _ => false,
        }
    }

    #[inline(always)]
    fn keep_typed<T: Keepable>(&mut self, tensor: Tensor<T>, version: u32) -> bool {
        if let Kept::Nothing = self.kept {
            self.put_kept(T::keep([Maybe(tensor), Maybe::NOTHING], [version, 0], Marks::default()));
            return true;
        }
        match T::places(&mut self.kept) {
            Some(([_, place], second, before))
                if place.get().is_none() && (*before == 0 || version == 0) =>
            {
                forget(replace(place, Maybe(tensor)));
                if version != 0 {
                    (*second, *before) = (true, version);
                }
                true
            }
            _ => false,
        }
    }

    /// Marks each tensor that is kept, by its address. The output holds the node, so the node holds a copy
    /// of it.
    #[inline(always)]
    pub(super) fn mark_kept(&mut self, call: &SmallCall<'_>, output: *const ()) {
        #[inline(always)]
        fn each<T: Element>(
            tensors: &mut [Maybe<T>; 2],
            marks: &mut Marks,
            call: &SmallCall<'_>,
            output: *const (),
        ) {
            for (Maybe(tensor), mark) in tensors.iter_mut().zip(marks) {
                if !tensor.is_somewhere() {
                    break;
                }
                let address = tensor.address();
                *mark = match address {
                    _ if address == call.inputs[0] => Mark::First,
                    _ if address == call.inputs[1] => Mark::Second,
                    _ if address == output => {
                        *tensor = tensor.kept_output();
                        Mark::Output
                    }
                    _ => Mark::Other,
                };
            }
        }
        match &mut self.kept {
            Kept::Nothing | Kept::Number(_) => {}
            Kept::Float32 { tensors, marks, .. } => each(tensors, marks, call, output),
            Kept::Float64 { tensors, marks, .. } => each(tensors, marks, call, output),
        }
    }

    /// What is kept; nothing is then.
    pub(crate) fn take_kept(&mut self) -> Kept {
        replace(&mut self.kept, Kept::Nothing)
    }

    /// The edges, which are blank then.
    pub(crate) fn take_edges(&mut self) -> [Edge; 2] {
        replace(&mut self.edges, Self::BLANK.edges)
    }

    #[inline]
    pub(crate) fn edges(&self) -> &[Edge] {
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
        if let Some(saved) = self.op.saved(self, at)? {
            return Ok(saved);
        }
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
            Kept::Float32 { tensors, second, version, .. } => (*second, *version, of(tensors)),
            Kept::Float64 { tensors, second, version, .. } => (*second, *version, of(tensors)),
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
        for (place, (saved, found)) in saved.into_iter().zip(found).enumerate() {
            at.check_version(saved, found, || self.op.kept_name(&self.kept, place))?;
        }
        Ok(())
    }
}
