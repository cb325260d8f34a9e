//! One call of a custom op: forward runs unrecorded, then its outputs are attached to a node.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::call::{Attrs, Inputs, Primal};
#[cfg(not(feature = "verify"))]
use super::environment;
#[cfg(debug_assertions)]
use super::inputs::contains;
use super::inputs::{InputTensors, NeedsGrad, tensors, version, wanted};
use super::outputs::{Fallible, TensorOutput, Visitor};
use super::rules::CustomOpRules;
use super::saved::Pack;
#[cfg(feature = "verify")]
use super::verify;
use crate::error::{Error, Result};
#[cfg(debug_assertions)]
use crate::graph::forward_reads;
use crate::graph::{
    AnyTensor, Events, ForwardGuard, ForwardMode, NodeRef, is_grad_enabled, notify, observes,
    protect_inputs,
};
use crate::ops::panic_with;
use crate::ops::trace::{self, CustomOpCall, InCustomOp, Note};

/// A call of a custom op while its forward runs.
#[doc(hidden)]
pub struct Forward<'a> {
    pub(super) rules: &'static CustomOpRules,
    pub(super) inputs: &'a [InputTensors<'a>],
    location: &'static Location<'static>,
    saved: bool,
    pub(super) marked_not_inplace: bool,
    pub(super) materialize_set: bool,
    pub(super) own: Own,
}

/// The part of a call that needs a drop, which is compiled in the library, not in each crate with an op.
pub(super) struct Own(ManuallyDrop<Owned>);

#[derive(Default)]
pub(super) struct Owned {
    running: Option<ForwardGuard>,
    /// Records the tensors that forward reads and its signature does not show.
    #[cfg(debug_assertions)]
    hidden: Option<forward_reads::ReadGuard>,
    /// The node of the call, if it is recorded.
    node: Option<NodeRef>,
    pub(super) attrs: Attrs,
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
pub(super) struct Rare {
    traced: Option<InCustomOp>,
    /// The inputs for `jvp`, if forward mode is on.
    primals: Option<Box<[Primal]>>,
    pub(super) non_differentiable: Option<Vec<AnyTensor>>,
    broken: Option<Error>,
}

impl Deref for Own {
    type Target = Owned;

    fn deref(&self) -> &Owned {
        &self.0
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut Owned {
        &mut self.0
    }
}

impl Own {
    #[cold]
    fn empty(&mut self) {
        // The default owns nothing.
        *self.0 = Owned::default();
    }
}

impl Drop for Own {
    #[inline]
    fn drop(&mut self) {
        let Owned { running, node, attrs, rare, .. } = &*self.0;
        let is_spent = running.is_none() && node.is_none() && attrs.is_none() && rare.is_none();
        if cfg!(debug_assertions) || !is_spent {
            self.empty();
        }
    }
}

impl Owned {
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// Creates the record of a call, with the location of the caller. [`Forward::start`] begins it.
#[inline]
#[must_use]
#[track_caller]
pub fn start<'a>(rules: &'static CustomOpRules, inputs: &'a [InputTensors<'a>]) -> Forward<'a> {
    Forward {
        rules,
        inputs,
        location: Location::caller(),
        saved: false,
        marked_not_inplace: false,
        materialize_set: false,
        own: Own(ManuallyDrop::default()),
    }
}

impl Forward<'_> {
    // Compiled once, in the library, and in place: a move of the value would load it in wider parts than it
    // was stored, and the processor waits for that.
    pub fn start(&mut self) -> &mut Self {
        let (rules, inputs) = (self.rules, self.inputs);
        let wanted = protect_inputs(|protected| {
            let mut wanted = 0;
            for (position, input) in inputs.iter().enumerate() {
                if rules.info.is_differentiable(position) {
                    input.for_each(|tensor| {
                        wanted += usize::from(tensor.protect(protected, &rules.info, position));
                    });
                }
            }
            wanted
        });
        if wanted > 0 && is_grad_enabled() {
            let inputs = Inputs(&rules.info, inputs);
            let node = || NodeRef::with_edges(rules, self.location, || inputs.edges());
            self.own.node.get_or_insert_with(node);
            if rules.push.is_some() && ForwardMode::is_on() {
                self.own.rare().primals = Some(inputs.primals());
            }
            if let Some(traced) = InCustomOp::begin() {
                self.own.rare().traced = Some(traced);
            }
            // Refuses verification that the environment asks for and this build cannot do.
            #[cfg(not(feature = "verify"))]
            if environment::is_enabled() {
                self.own.rare().broken = Some(environment::refusal(rules.info.name));
            }
        }
        #[cfg(debug_assertions)]
        {
            // With recording off nothing is lost: inside another custom op's forward, that op has the reads.
            self.own.hidden = is_grad_enabled().then(forward_reads::ReadGuard::start);
        }
        self.own.running = Some(ForwardGuard::new(wanted));
        self
    }

    #[inline]
    pub(super) fn is_recorded(&self) -> bool {
        self.own.node.is_some()
    }

    /// The place of saved tensors; `None` if none are kept.
    // Not inlined, so that a crate of ops does not compile it again.
    #[inline(never)]
    pub(super) fn saving(&mut self) -> Option<Pack<'_>> {
        if self.saved {
            self.refuse_second("save_for_backward");
            return None;
        }
        self.saved = true;
        self.own.node.as_mut().map(|node| Pack(node.state()))
    }

    #[cold]
    pub(super) fn refuse(&mut self, call: &'static str, why: String) {
        let op = self.rules.info.name;
        self.own.rare().broken.get_or_insert_with(|| Error::Context { op, call, why });
    }

    #[cold]
    pub(super) fn refuse_second(&mut self, call: &'static str) {
        self.refuse(call, "called twice in one forward; call it once with everything".to_owned());
    }

    /// Ends a call whose forward has returned.
    pub(super) fn finish(&mut self, outputs: &mut dyn TensorOutput) -> Result<()> {
        let visitor = &mut Visitor::default();
        outputs.visit(visitor);
        let outputs = visitor;
        if let Some(running) = self.own.running.take() {
            running.end(|input| version(self.inputs, input))?;
        }
        if self.own.rare.is_some() {
            return self.finish_rare(outputs);
        }
        #[cfg(debug_assertions)]
        self.check_hidden()?;
        if self.is_recorded() {
            let node = self.record(outputs, &[], None)?;
            outputs.attach(node);
            #[cfg(feature = "verify")]
            verify::note(outputs);
        } else {
            self.release(outputs);
        }
        Ok(())
    }

    /// As [`finish`](Self::finish), if outputs are marked, a rule was broken, or the call is observed.
    #[cold]
    fn finish_rare(&mut self, outputs: &mut Visitor<'_>) -> Result<()> {
        let Rare { traced, primals, non_differentiable, broken } =
            self.own.rare.take().map_or_else(Rare::default, |rare| *rare);
        if let Some(broken) = broken {
            return Err(broken);
        }
        let (traced, marked) =
            (traced.map(InCustomOp::end), non_differentiable.unwrap_or_default());
        #[cfg(debug_assertions)]
        self.check_hidden()?;
        self.check_marks(outputs, &marked)?;
        if !self.is_recorded() {
            self.release(outputs);
            return Ok(());
        }
        let returned = traced.as_ref().map(|_| outputs.to_tensors());
        let node = self.record(outputs, &marked, primals)?;
        match &marked[..] {
            [] => outputs.attach(node),
            marked => outputs.attach_unmarked(&node, marked, self.inputs),
        }
        #[cfg(feature = "verify")]
        verify::note(outputs);
        if let (Some(forward), Some(returned)) = (traced, returned) {
            self.note_traced(forward, returned, outputs);
        }
        Ok(())
    }

    #[inline(never)]
    fn release(&self, outputs: &mut Visitor<'_>) {
        outputs.release(self.inputs, self.rules.info.lost(self.inputs, self.location));
    }

    /// Notes the call in a trace, with the ops that its forward ran and the tensors that it returned.
    fn note_traced(&self, forward: Vec<Note>, returned: Vec<AnyTensor>, outputs: &Visitor<'_>) {
        let info = &self.rules.info;
        let (mut inputs, mut differentiable) = (Vec::new(), Vec::new());
        for (position, input) in self.inputs.iter().enumerate() {
            inputs.extend(tensors(*input));
            differentiable.resize(inputs.len(), info.is_differentiable(position));
        }
        let (name, once_differentiable) = (info.name, info.once_differentiable);
        let op = CustomOpCall { name, once_differentiable, differentiable, forward, returned };
        let (call, outputs) = (trace::NotedCall::CustomOp(Box::new(op)), outputs.to_tensors());
        trace::note(Note { call, inputs, outputs, caller: self.location, part_of: None });
    }

    fn check_declared(&self) -> Result<()> {
        if !self.saved && (self.rules.saves)() {
            return self.missing("save_for_backward", "type Saved");
        }
        if self.own.attrs.is_none() && (self.rules.sets)() {
            return self.missing("set_attrs", "type Attrs");
        }
        Ok(())
    }

    #[cold]
    fn missing(&self, call: &'static str, of: &str) -> Result<()> {
        Err(Error::Context {
            op: self.rules.info.name,
            call,
            why: format!("`{of}` is declared, but forward returned without this call"),
        })
    }

    /// Records the node of the call. `marked` are the outputs that are not differentiable.
    #[inline(always)]
    fn record(
        &mut self,
        outputs: &Visitor<'_>,
        marked: &[AnyTensor],
        primals: Option<Box<[Primal]>>,
    ) -> Result<NodeRef> {
        self.check_declared()?;
        let inputs = Inputs(&self.rules.info, self.inputs);
        let Owned { node, attrs, .. } = &mut *self.own;
        let Some(mut node) = node.take() else { unreachable!("the call is recorded") };
        inputs.end(node.state(), attrs.take(), primals, outputs, marked);
        let node = node.recorded();
        if observes(Events::VALUES) {
            self.report_untracked(&node);
        }
        Ok(node)
    }

    #[cold]
    fn report_untracked(&self, node: &NodeRef) {
        let info = &self.rules.info;
        for (position, input) in self.inputs.iter().enumerate() {
            if info.is_differentiable(position) {
                continue;
            }
            let (name, tensors) = (info.input_name(position).unwrap_or_default(), tensors(*input));
            for (i, tensor) in tensors.iter().enumerate() {
                let alone = tensors.len() == 1;
                let name = if alone { name.to_owned() } else { format!("{name}[{i}]") };
                notify(Events::VALUES, |observer| observer.untracked(node, name.clone(), tensor));
            }
        }
    }

    fn check_marks(&self, outputs: &Visitor<'_>, marked: &[AnyTensor]) -> Result<()> {
        for (position, tensor) in marked.iter().enumerate() {
            if !outputs.is_output(tensor.address()) {
                return Err(Error::Context {
                    op: self.rules.info.name,
                    call: "mark_non_differentiable",
                    why: format!("tensor {position} is not an output of the op; mark outputs only"),
                });
            }
        }
        Ok(())
    }

    #[cfg(debug_assertions)]
    fn check_hidden(&mut self) -> Result<()> {
        let reads = self.own.hidden.take().map(forward_reads::ReadGuard::end).unwrap_or_default();
        let is_input = |read: &forward_reads::TensorRead| {
            self.inputs.iter().any(|input| contains(*input, read.address))
        };
        let Some(forward_reads::TensorRead { shape, op, at, .. }) =
            reads.into_iter().find(|r| !is_input(r))
        else {
            return Ok(());
        };
        Err(Error::Unsupported {
            op: self.rules.info.name,
            why: format!(
                "forward reads a tensor of shape {shape:?} that wants a gradient (stop_gradient is \
                 false) and is no input of the op, in {op} at {at}: its gradient would be lost; \
                 make it an input, or read its `detach()` if that is meant"
            ),
        })
    }
}

impl NeedsGrad for Forward<'_> {
    fn one(&self, group: usize) -> bool {
        self.is_recorded()
            && self.rules.info.is_differentiable(group)
            && wanted(self.inputs[group]).contains(&true)
    }

    fn list(&self, group: usize) -> Vec<bool> {
        let input = self.inputs[group];
        let wants = self.is_recorded() && self.rules.info.is_differentiable(group);
        wanted(input).into_iter().map(|each| wants && each).collect()
    }
}

/// Ends a call whose forward has returned. `visit` passes the output tensors to the visitor.
pub fn finish<O>(
    forward: &mut Forward<'_>,
    outputs: O,
    visit: impl for<'o> Fn(&'o mut O, &mut Visitor<'o>),
) -> Result<O> {
    let mut visited = (outputs, visit);
    forward.finish(&mut visited)?;
    Ok(visited.0)
}

/// As [`finish`], for a forward that may fail; an `Err` is not recorded.
pub fn finish_fallible<R: Fallible>(
    forward: &mut Forward<'_>,
    returned: R,
    visit: impl for<'o> Fn(&'o mut R::Output, &mut Visitor<'o>),
) -> Result<R> {
    let returned = match returned.result() {
        Ok(outputs) => Ok(finish(forward, outputs, visit)?),
        Err(error) => {
            #[cfg(feature = "verify")]
            verify::note_failure();
            Err(error)
        }
    };
    Ok(R::of(returned))
}

/// For an op without backward: returns an error if recording is on and an input wants a gradient.
pub fn without_gradient(forward: &Forward<'_>) -> Result<()> {
    if !forward.is_recorded() {
        return Ok(());
    }
    let info = &forward.rules.info;
    let wants = |&position: &usize| {
        info.is_differentiable(position) && wanted(forward.inputs[position]).contains(&true)
    };
    let position = (0..info.inputs).find(wants);
    let name = position.and_then(|position| info.input_name(position)).unwrap_or_default();
    Err(Error::Unsupported {
        op: info.name,
        why: format!(
            "the input `{name}` wants a gradient (stop_gradient is false), but this op has no \
             backward; give `{name}.detach()`, call it under `no_grad()`, or declare \
             `#[stop_gradient] {name}`"
        ),
    })
}

/// Returns the outputs, or panics at the caller's line.
#[track_caller]
pub fn expect<O>(applied: Result<O>) -> O {
    match applied {
        Ok(outputs) => outputs,
        Err(error) => panic_with(error),
    }
}
