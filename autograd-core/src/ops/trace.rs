//! Traces: the eager ops that a closure runs on examples. An op that can be in a program notes
//! itself where it starts; ops that it calls are not noted.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use super::elementwise::Handle;
use super::number::Refused;
use super::table::{Attr, OpDef};
use super::{Caller, Float};
use crate::error::Result;
use crate::graph::{
    AnyTensor, Composite, Element, Events, Observer, Observing, Tensor, for_any, is_noting,
    observer, update_events,
};

/// User code. An absent gradient did not arrive, or does not exist.
pub(crate) type UserFn = Arc<dyn Fn(&[Option<AnyTensor>]) -> Returned + Send + Sync>;

pub(crate) type Returned = Result<Vec<Option<AnyTensor>>>;

#[derive(Clone)]
pub(crate) enum NotedCall {
    Op {
        def: &'static OpDef,
        attrs: Vec<Attr>,
    },
    /// A user's elementwise op, as its formulas.
    Formula {
        name: &'static str,
        run: UserFn,
    },
    CustomOp(Box<CustomOpCall>),
}

#[cfg(feature = "static-graph")]
impl NotedCall {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Op { def, .. } => def.name,
            Self::Formula { name, .. } => name,
            Self::CustomOp(call) => call.name,
        }
    }
}

/// A call of a custom op; its backward is in the graph of its outputs.
#[derive(Clone)]
pub(crate) struct CustomOpCall {
    pub(crate) name: &'static str,
    pub(crate) once_differentiable: bool,
    /// For each input tensor: whether the input is differentiated, and so has an edge in the graph.
    pub(crate) differentiable: Vec<bool>,
    pub(crate) forward: Vec<Note>,
    /// The tensors that forward returned. The outputs are these tensors with a producer in the graph.
    pub(crate) returned: Vec<AnyTensor>,
}

#[derive(Clone)]
pub(crate) struct Note {
    pub(crate) call: NotedCall,
    /// Held, so that no address is reused and no data is changed in place.
    pub(crate) inputs: Vec<AnyTensor>,
    pub(crate) outputs: Vec<AnyTensor>,
    pub(crate) caller: Caller,
    /// What user code called, if that is noted as its parts.
    pub(crate) part_of: Option<&'static str>,
}

#[cfg(feature = "static-graph")]
impl Note {
    pub(crate) fn name(&self) -> &'static str {
        self.part_of.unwrap_or_else(|| self.call.name())
    }
}

/// The observer of a traced closure.
#[derive(Default)]
struct Tracer {
    /// The inputs of the closure, whose numbers it must not read.
    given: Vec<AnyTensor>,
    notes: RefCell<Vec<Note>>,
    /// The notes from before each custom op whose forward is running.
    outer_notes: RefCell<Vec<Vec<Note>>>,
    /// Whether the ops that run are part of a noted one.
    is_inside: Cell<bool>,
}

impl Observer for Tracer {
    fn events(&self) -> Events {
        if self.is_inside.get() { Events::NONE } else { Events::OPS }
    }
}

impl Tracer {
    fn set_inside(&self, is_inside: bool) -> bool {
        let before = self.is_inside.replace(is_inside);
        update_events();
        before
    }

    /// Runs a function whose ops are not noted.
    fn inside<R>(&self, run: impl FnOnce() -> R) -> R {
        struct Before<'a>(&'a Tracer, bool);
        impl Drop for Before<'_> {
            fn drop(&mut self) {
                self.0.set_inside(self.1);
            }
        }
        let _before = Before(self, self.set_inside(true));
        run()
    }
}

/// The trace that runs. To be called only if [`is_noting`].
fn tracer() -> Rc<Tracer> {
    observer().unwrap_or_default()
}

/// Runs a closure, which must not read numbers that depend on `given`, and returns the notes of its ops.
pub(crate) fn collect<R>(given: Vec<AnyTensor>, run: impl FnOnce() -> R) -> (R, Vec<Note>) {
    let tracer = Observing::start(Tracer { given, ..Tracer::default() });
    let result = run();
    let notes = tracer.notes.take();
    (result, notes)
}

/// A custom op's forward, whose ops are noted separately. A drop without [`end`](Self::end) discards the notes.
pub(crate) struct InCustomOp(Rc<Tracer>);

impl InCustomOp {
    #[inline]
    pub(crate) fn begin() -> Option<Self> {
        is_noting().then(Self::begin_noted)
    }

    #[cold]
    fn begin_noted() -> Self {
        let tracer = tracer();
        tracer.outer_notes.borrow_mut().push(tracer.notes.take());
        Self(tracer)
    }

    pub(crate) fn end(self) -> Vec<Note> {
        self.0.notes.take()
    }
}

impl Drop for InCustomOp {
    fn drop(&mut self) {
        let before = self.0.outer_notes.borrow_mut().pop().unwrap_or_default();
        drop(self.0.notes.replace(before));
    }
}

pub(crate) fn is_tracing() -> bool {
    is_noting() && !tracer().given.is_empty()
}

/// Panics if `x` depends on the closure's inputs; the trace reports it. To be called only if [`is_noting`].
#[cold]
pub(crate) fn refuse_read(x: &AnyTensor, name: &str, caller: Caller) {
    let tracer = tracer();
    if tracer.inside(|| tracer.depends_on_given(x)) {
        let caller = Composite::place(caller);
        let why = format!(
            "{name} ({caller}): reads numbers that follow the closure's inputs; the program would keep those of \
             the example: place the closure with `eager`, or a `#[py_layer]` op with `py_layer`"
        );
        std::panic::resume_unwind(Box::new(Refused(why)));
    }
}

impl Tracer {
    fn depends_on_given(&self, x: &AnyTensor) -> bool {
        // A detached or saved tensor is another tensor with the same elements.
        let follows = |known: &[AnyTensor], x: &AnyTensor| {
            known.iter().any(|y| y.is_same(x) || x.dtype().is_float() && is_equal(y, x))
        };
        let mut known = self.given.clone();
        if !known.is_empty() {
            let (outer, notes) = (self.outer_notes.borrow(), self.notes.borrow());
            for note in outer.iter().flatten().chain(notes.iter()) {
                if note.inputs.iter().any(|input| follows(&known, input)) {
                    known.extend_from_slice(&note.outputs);
                }
            }
        }
        follows(&known, x)
    }
}

/// Whether two tensors have the same type, shape and elements; NaN equals NaN.
pub(crate) fn is_equal(a: &AnyTensor, b: &AnyTensor) -> bool {
    fn same<T: Element>(a: &Tensor<T>, b: &AnyTensor) -> bool {
        b.downcast_ref::<T>().is_some_and(|b| {
            #[allow(clippy::eq_op, reason = "it tells NaN from numbers")]
            let same = |(x, y): (T, T)| x == y || (x != x && y != y);
            a.shape() == b.shape() && T::to_vec(a).into_iter().zip(T::to_vec(b)).all(same)
        })
    }
    for_any!(a, a => same(a, b))
}

/// Runs an op and notes it, but not the ops that it calls. To be called only if [`is_noting`].
#[cold]
pub(crate) fn noted<O>(
    call: NotedCall,
    inputs: Vec<AnyTensor>,
    caller: Caller,
    run: impl FnOnce() -> Result<O>,
    outputs: impl FnOnce(&O) -> Vec<AnyTensor>,
) -> Result<O> {
    let done = tracer().inside(run)?;
    note(Note { call, inputs, outputs: outputs(&done), caller, part_of: None });
    Ok(done)
}

pub(crate) fn note(mut note: Note) {
    note.caller = Composite::place(note.caller);
    note.part_of = Composite::name(note.caller);
    tracer().notes.borrow_mut().push(note);
}

pub(crate) fn formula<T: Float>(op: &Handle<T>) -> NotedCall {
    fn all<T: Element>(inputs: &[Option<AnyTensor>]) -> Vec<&Tensor<T>> {
        inputs.iter().flatten().filter_map(AnyTensor::downcast_ref).collect()
    }
    let (name, op) = (op.info().name, op.clone());
    let run = move |inputs: &[Option<AnyTensor>]| {
        let (reals, masks) = (all::<T>(inputs), all::<bool>(inputs));
        let outputs = T::elementwise(op.clone(), &reals, &masks, Location::caller())?;
        Ok(outputs.into_iter().map(|output| Some(output.into())).collect())
    };
    NotedCall::Formula { name, run: Arc::new(run) }
}
