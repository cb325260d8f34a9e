//! Traces: what a closure of eager ops does, op by op, noted while it runs on examples.
//!
//! An op that can be in a program says so where it starts; what is computed inside it is its own
//! business. One flag of a thread is all that costs where nothing is noted.

use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;

use super::elementwise::Handle;
pub(crate) use super::noting::is_noting;
use super::noting::{State, Within};
use super::table::OpDef;
use super::table::attr::Attr;
use super::{Caller, Float};
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor};

/// Code of a user: absent are a gradient that did not come, and one that there is not.
pub(crate) type UserFn =
    Arc<dyn Fn(&[Option<AnyTensor>]) -> Result<Vec<Option<AnyTensor>>, String> + Send + Sync>;

/// An op without its tensors.
#[derive(Clone)]
pub(crate) enum Call {
    /// One of the table.
    Op {
        def: &'static OpDef,
        attrs: Vec<Attr>,
    },
    /// An elementwise op of a user: its formulas.
    Formula {
        name: &'static str,
        run: UserFn,
    },
    Layer(Box<Layer>),
}

#[cfg(feature = "static-graph")]
impl Call {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Op { def, .. } => def.name,
            Self::Formula { name, .. } => name,
            Self::Layer(layer) => layer.name,
        }
    }
}

/// A `#[py_layer]` op; its backward is in the graph of its outputs.
#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    pub(crate) once_differentiable: bool,
    /// Of each tensor of the inputs, whether its input is differentiated: it has an edge in the graph then.
    pub(crate) differentiable: Vec<bool>,
    /// What forward did.
    pub(crate) forward: Vec<Note>,
    /// The tensors that forward returned: the outputs are these, with a place in the graph.
    pub(crate) returned: Vec<AnyTensor>,
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

thread_local! {
    static NOTES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    /// What was noted before each layer whose forward runs now.
    static AROUND: RefCell<Vec<Vec<Note>>> = const { RefCell::new(Vec::new()) };
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

/// Runs an op and notes it; what it is made of is not noted. For where [`is_noting`].
#[cold]
pub(crate) fn noted<O>(
    call: Call,
    inputs: Vec<AnyTensor>,
    caller: Caller,
    run: impl FnOnce() -> Result<O>,
    outputs: impl FnOnce(&O) -> Vec<AnyTensor>,
) -> Result<O> {
    let inside = Within::state(State::Inside);
    let done = run()?;
    drop(inside);
    note(Note { call, inputs, outputs: outputs(&done), caller });
    Ok(done)
}

pub(crate) fn note(note: Note) {
    NOTES.with_borrow_mut(|notes| notes.push(note));
}

/// An elementwise op to keep.
pub(crate) fn formula<T: Float>(op: &Handle<T>) -> Call {
    fn all<T: Element>(inputs: &[Option<AnyTensor>]) -> Vec<&Tensor<T>> {
        inputs.iter().flatten().filter_map(AnyTensor::downcast_ref).collect()
    }
    let (name, op) = (op.info().name, op.clone());
    let run = move |inputs: &[Option<AnyTensor>]| {
        let (reals, masks) = (all::<T>(inputs), all::<bool>(inputs));
        let outputs = T::elementwise(op.clone(), &reals, &masks, Location::caller());
        let outputs = outputs.map_err(|error| error.to_string())?;
        Ok(outputs.into_iter().map(|output| Some(output.into())).collect())
    };
    Call::Formula { name, run: Arc::new(run) }
}
