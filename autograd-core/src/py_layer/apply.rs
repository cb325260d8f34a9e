//! One call of a layer: forward runs unrecorded, then its outputs are attached to a node.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::call::{Attrs, Call};
#[cfg(not(feature = "verify"))]
use super::environment;
#[cfg(debug_assertions)]
use super::inputs::contains;
use super::inputs::{NeedsGrad, TensorInput, tensors, version, wanted};
use super::outputs::{Fallible, Visitor};
use super::rules::LayerRules;
use super::saved::Pack;
#[cfg(feature = "verify")]
use super::verify;
use crate::error::{Error, Result};
#[cfg(debug_assertions)]
use crate::graph::hidden;
use crate::graph::{
    AnyTensor, ForwardGuard, ForwardMode, NodeRef, beside, is_grad_enabled, is_observed, protected,
};
use crate::ops::failed;
use crate::ops::trace::{self, InLayer, Layer as Traced, Note};

/// A call of a layer whose forward runs.
#[doc(hidden)]
pub struct Forward<'a> {
    pub(super) rules: &'static LayerRules,
    pub(super) inputs: &'a [&'a dyn TensorInput],
    location: &'static Location<'static>,
    /// Whether forward called `save_for_backward`.
    saved: bool,
    pub(super) marked_not_inplace: bool,
    pub(super) materialize_set: bool,
    pub(super) own: Own,
}

/// What a call has to drop. It is dropped in the library, and that is compiled once, not in
/// every crate with an op.
pub(super) struct Own(ManuallyDrop<Owned>);

#[derive(Default)]
pub(super) struct Owned {
    /// Forward runs.
    running: Option<ForwardGuard>,
    /// Tensors that forward reads and its signature does not show are noted.
    #[cfg(debug_assertions)]
    hidden: Option<hidden::Watch>,
    /// What is noted for the node, if this call is recorded.
    call: Option<Call>,
    pub(super) attrs: Attrs,
    rare: Option<Box<Rare>>,
}

/// What most calls do not have.
#[derive(Default)]
pub(super) struct Rare {
    /// What forward does is noted by itself where a closure is traced.
    traced: Option<InLayer>,
    pub(super) non_differentiable: Option<Vec<AnyTensor>>,
    /// The first call that broke a rule.
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

impl Drop for Own {
    fn drop(&mut self) {
        let Owned { running, call, attrs, rare, .. } = &*self.0;
        let is_spent = running.is_none() && call.is_none() && attrs.is_none() && rare.is_none();
        if cfg!(debug_assertions) || !is_spent {
            // What stands in its place then owns nothing.
            *self.0 = Owned::default();
        }
    }
}

impl Owned {
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// What forward's context notes of a call where the caller's caller stands; [`Forward::start`] starts it.
#[inline]
#[must_use]
#[track_caller]
pub fn start<'a>(rules: &'static LayerRules, inputs: &'a [&'a dyn TensorInput]) -> Forward<'a> {
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
    /// The call starts: recording is off until it ends.
    // Compiled once, in the library, and written where the context stands: what is moved there would be
    // read wider than it was written, and the processor waits for that.
    pub fn start(&mut self) -> &mut Self {
        let before = protected();
        let (rules, inputs) = (self.rules, self.inputs);
        let mut call = is_grad_enabled().then(|| self.own.call.insert(Call::default()));
        let mut is_wanted = false;
        for (position, input) in inputs.iter().enumerate() {
            let differentiable = rules.info.is_differentiable(position);
            input.each(&mut |tensor| {
                is_wanted |= differentiable && tensor.protect(&rules.info, position);
                if let Some(call) = &mut call {
                    call.add(position, tensor, differentiable);
                }
            });
        }
        if !is_wanted {
            self.own.call = None;
        } else if let Some(call) = call {
            if rules.push.is_some() && ForwardMode::is_on() {
                call.keep_primals(&rules.info, inputs);
            }
            if let Some(traced) = InLayer::begin() {
                self.own.rare().traced = Some(traced);
            }
            // What the environment asks for is refused here where this build cannot do it.
            #[cfg(not(feature = "verify"))]
            if environment::asks() {
                self.own.rare().broken = Some(environment::refusal(rules.info.name));
            }
        }
        #[cfg(debug_assertions)]
        {
            // Where nothing would be recorded, nothing is lost: a layer inside the forward of another one
            // reads for that.
            self.own.hidden = is_grad_enabled().then(hidden::Watch::start);
        }
        self.own.running = Some(ForwardGuard::new(before));
        self
    }

    #[inline]
    pub(super) fn is_recorded(&self) -> bool {
        self.own.call.is_some()
    }

    /// Where saved tensors go; `None` where none are kept.
    // A call, so that a crate of ops does not compile it again.
    #[inline(never)]
    pub(super) fn saving(&mut self) -> Option<&mut Pack> {
        if self.saved {
            self.refuse_second("save_for_backward");
            return None;
        }
        self.saved = true;
        self.own.call.as_mut().map(|call| &mut call.saved)
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

    /// Forward is done: checks what it did, and records.
    fn finish(&mut self, outputs: &mut Visitor<'_>) -> Result<()> {
        if let Some(running) = self.own.running.take() {
            running.end(|input| version(self.inputs, input))?;
        }
        let (mut traced, mut marked) = (None, Vec::new());
        if let Some(rare) = self.own.rare.take() {
            let Rare { traced: noted, non_differentiable, broken } = *rare;
            if let Some(broken) = broken {
                return Err(broken);
            }
            traced = noted.map(InLayer::end);
            marked = non_differentiable.unwrap_or_default();
        }
        #[cfg(debug_assertions)]
        self.check_hidden()?;
        self.check_marks(outputs, &marked)?;
        if !self.is_recorded() {
            outputs.release(self.inputs, self.rules.info.lost(self.inputs, self.location));
            return Ok(());
        }
        let returned = traced.as_ref().map(|_| outputs.kept());
        let node = self.record(outputs, &marked)?;
        match &marked[..] {
            [] => outputs.attach(node),
            marked => outputs.attach_unmarked(&node, marked, self.inputs),
        }
        #[cfg(feature = "verify")]
        verify::note(outputs);
        if let (Some(forward), Some(returned)) = (traced, returned) {
            let info = &self.rules.info;
            let (mut inputs, mut differentiable) = (Vec::new(), Vec::new());
            for (position, input) in self.inputs.iter().enumerate() {
                inputs.extend(tensors(*input));
                differentiable.resize(inputs.len(), info.is_differentiable(position));
            }
            let (name, once_differentiable) = (info.name, info.once_differentiable);
            let layer = Traced { name, once_differentiable, differentiable, forward, returned };
            let (call, outputs) = (trace::Call::Layer(Box::new(layer)), outputs.kept());
            trace::note(Note { call, inputs, outputs, caller: self.location });
        }
        Ok(())
    }

    /// What the op declares, forward must have given.
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

    /// The node of the call, with its outputs and those that are marked as not differentiable.
    fn record(&mut self, outputs: &Visitor<'_>, marked: &[AnyTensor]) -> Result<NodeRef> {
        self.check_declared()?;
        let attrs = self.own.attrs.take();
        let Some(call) = &mut self.own.call else { unreachable!("the call is recorded") };
        let given = (&self.rules.info, self.inputs);
        let node = call.record(self.rules, given, attrs, (outputs, marked), self.location);
        self.own.call = None;
        if is_observed() {
            self.show_beside(&node);
        }
        Ok(node)
    }

    /// Shows an anomaly scope the inputs that are never differentiated.
    #[cold]
    fn show_beside(&self, node: &NodeRef) {
        let info = &self.rules.info;
        for (position, input) in self.inputs.iter().enumerate() {
            if info.is_differentiable(position) {
                continue;
            }
            let (name, tensors) = (info.input_name(position).unwrap_or_default(), tensors(*input));
            for (i, tensor) in tensors.iter().enumerate() {
                let alone = tensors.len() == 1;
                let name = if alone { name.to_owned() } else { format!("{name}[{i}]") };
                beside(node, name, tensor);
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

    /// An error where forward read a tensor that wants a gradient and is none of the inputs.
    #[cfg(debug_assertions)]
    fn check_hidden(&mut self) -> Result<()> {
        let reads = self.own.hidden.take().map(hidden::Watch::end).unwrap_or_default();
        let is_input =
            |read: &hidden::Read| self.inputs.iter().any(|input| contains(*input, read.address));
        let Some(hidden::Read { shape, op, at, .. }) = reads.into_iter().find(|r| !is_input(r))
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

/// Ends a call whose forward has returned. `visit` shows the visitor its tensors.
pub fn finish<O>(
    forward: &mut Forward<'_>,
    mut outputs: O,
    visit: impl for<'o> Fn(&'o mut O, &mut Visitor<'o>),
) -> Result<O> {
    let mut visitor = Visitor::new();
    visit(&mut outputs, &mut visitor);
    forward.finish(&mut visitor)?;
    drop(visitor);
    Ok(outputs)
}

/// The same for a forward that may fail; nothing is recorded for an `Err`.
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

/// For an op without backward: an error if gradients are on and an input wants one.
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

/// What was asked for, or a panic at the line of the caller.
#[track_caller]
pub fn expect<O>(applied: Result<O>) -> O {
    match applied {
        Ok(outputs) => outputs,
        Err(error) => failed(error),
    }
}
