//! Traces: what a closure of eager ops does, op by op, noted while it runs on examples.
//!
//! An op that can be in a program says so where it starts; what is computed inside it is its own
//! business. One flag of a thread is all that costs where nothing is noted.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use smallvec::SmallVec;

use super::Caller;
use super::elementwise::Handle;
use crate::array::DType;
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor};

/// Lengths of the axes; `None` for a free one, whose length is known when the program runs.
pub(crate) type Dims = SmallVec<[Option<usize>; 4]>;

/// An attribute of an op.
#[derive(Clone, Debug)]
pub(crate) enum Attr {
    Number(f64),
    /// Options of an optimizer.
    Numbers(Vec<f64>),
    Flag(bool),
    /// An axis, or a position.
    Int(isize),
    /// Axes.
    Ints(Vec<isize>),
    /// A shape, or a position that may be open.
    Dims(Dims),
    /// Lengths of two directions each.
    Pairs(Vec<[usize; 2]>),
    Type(DType),
    Tensor(AnyTensor),
}

impl Attr {
    /// A shape without free axes.
    pub(crate) fn shape(shape: &[usize]) -> Self {
        Self::Dims(shape.iter().copied().map(Some).collect())
    }
}

/// An op without its tensors.
#[derive(Clone)]
pub(crate) enum Call {
    /// One that programs have: its family, where several share a name, its name and attributes.
    Op {
        family: &'static str,
        name: &'static str,
        attrs: Vec<Attr>,
    },
    /// An elementwise op of a user: its formulas, as `Handle<f32>` or of `f64`.
    Formula {
        name: &'static str,
        op: Arc<dyn Any + Send + Sync>,
    },
    Layer(Box<Layer>),
}

impl Call {
    pub(crate) fn op<const N: usize>(name: &'static str, attrs: [Attr; N]) -> Self {
        Self::of("", name, attrs)
    }

    pub(crate) fn of<const N: usize>(
        family: &'static str,
        name: &'static str,
        attrs: [Attr; N],
    ) -> Self {
        Self::Op { family, name, attrs: attrs.into() }
    }

    #[cfg(feature = "static-graph")]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Op { name, .. } | Self::Formula { name, .. } => name,
            Self::Layer(layer) => layer.name,
        }
    }
}

/// A `#[py_layer]` op; its backward is in the graph of its outputs.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// What forward did.
    pub(crate) forward: Vec<Note>,
    /// The tensors that forward returned, by address: the outputs are these, with a place in the
    /// graph.
    pub(crate) returned: Vec<*const ()>,
}

/// One op that ran.
#[derive(Clone)]
pub(crate) struct Note {
    pub(crate) call: Call,
    /// Held, so that no address is used twice and nothing is changed where it stands.
    pub(crate) inputs: Vec<AnyTensor>,
    pub(crate) outputs: Vec<AnyTensor>,
    pub(crate) caller: Caller,
}

/// Whether ops are noted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Off,
    Noting,
    /// Inside an op.
    Inside,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Off) };
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    /// What was noted before each layer whose forward runs now.
    static AROUND: RefCell<Vec<Vec<Note>>> = const { RefCell::new(Vec::new()) };
}

/// Sets the state until dropped, also by a panic.
struct Within(State);

impl Within {
    fn state(state: State) -> Self {
        Self(STATE.replace(state))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// Whether an op that starts now is to be noted.
#[inline(always)]
pub(crate) fn is_noting() -> bool {
    cfg!(feature = "static-graph") && matches!(STATE.get(), State::Noting)
}

/// Runs a closure and notes its ops, which come back; notes around go on afterwards.
pub(crate) fn collect<R>(run: impl FnOnce() -> R) -> (R, Vec<Note>) {
    struct Before(Vec<Note>, Vec<Vec<Note>>);
    impl Drop for Before {
        fn drop(&mut self) {
            NOTES.replace(std::mem::take(&mut self.0));
            AROUND.replace(std::mem::take(&mut self.1));
        }
    }
    let before = Before(NOTES.take(), AROUND.take());
    let within = Within::state(State::Noting);
    let result = run();
    drop(within);
    let notes = NOTES.take();
    drop(before);
    (result, notes)
}

/// While it lives, the forward of a layer runs, and what it does is noted by itself. Dropped without
/// an end, as for a forward that returns an error, it forgets that.
pub(crate) struct InLayer(());

impl InLayer {
    pub(crate) fn begin() -> Option<Self> {
        is_noting().then(|| {
            AROUND.with_borrow_mut(|around| around.push(NOTES.take()));
            Self(())
        })
    }

    /// What forward did.
    pub(crate) fn end(self) -> Vec<Note> {
        std::mem::forget(self);
        Self::leave()
    }

    fn leave() -> Vec<Note> {
        let around = AROUND.with_borrow_mut(Vec::pop).unwrap_or_default();
        NOTES.replace(around)
    }
}

impl Drop for InLayer {
    fn drop(&mut self) {
        drop(Self::leave());
    }
}

/// What an op returns.
pub(crate) trait Outputs {
    fn outputs(&self) -> Vec<AnyTensor>;
}

impl<T: Element> Outputs for Tensor<T> {
    fn outputs(&self) -> Vec<AnyTensor> {
        vec![T::wrap(self.clone())]
    }
}

impl Outputs for AnyTensor {
    fn outputs(&self) -> Vec<AnyTensor> {
        vec![self.clone()]
    }
}

impl<T: Element> Outputs for super::elementwise::Outputs<T> {
    fn outputs(&self) -> Vec<AnyTensor> {
        self.iter().map(|output| T::wrap(output.clone())).collect()
    }
}

impl<O: Outputs> Outputs for Result<O> {
    fn outputs(&self) -> Vec<AnyTensor> {
        self.as_ref().map_or(Vec::new(), Outputs::outputs)
    }
}

/// Runs an op, and notes it where that is asked for.
#[inline(always)]
pub(crate) fn op<O: Outputs>(
    call: impl FnOnce() -> Call,
    inputs: impl FnOnce() -> Vec<AnyTensor>,
    caller: Caller,
    run: impl FnOnce() -> O,
) -> O {
    // `run` is called at one place: it would be compiled for each.
    let noted = is_noting().then(|| Noted::start(call(), inputs(), caller));
    let done = run();
    if let Some(noted) = noted {
        noted.end(done.outputs());
    }
    done
}

/// An op that is noted while it runs.
struct Noted {
    call: Call,
    inputs: Vec<AnyTensor>,
    caller: Caller,
    /// What it is made of is not noted.
    inside: Within,
}

impl Noted {
    #[cold]
    fn start(call: Call, inputs: Vec<AnyTensor>, caller: Caller) -> Box<Self> {
        Box::new(Self { call, inputs, caller, inside: Within::state(State::Inside) })
    }

    #[cold]
    fn end(self, outputs: Vec<AnyTensor>) {
        let Self { call, inputs, caller, inside } = self;
        drop(inside);
        if !outputs.is_empty() {
            note(Note { call, inputs, outputs, caller });
        }
    }
}

pub(crate) fn note(note: Note) {
    NOTES.with_borrow_mut(|notes| notes.push(note));
}

/// Any tensor as one of unknown type.
pub(crate) fn any<T: Element>(tensor: &Tensor<T>) -> AnyTensor {
    T::wrap(tensor.clone())
}

/// An elementwise op to keep.
pub(crate) fn formula<T: Element>(op: &Handle<T>) -> Call {
    let (name, op) = (op.info().name, op.clone());
    Call::Formula { name, op: Arc::new(op) }
}
