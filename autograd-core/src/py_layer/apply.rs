//! One call of a layer: forward runs unrecorded, then its outputs are attached to a node.

use std::any::type_name;
use std::panic::Location;

use super::call::Call;
use super::context::Forward;
#[cfg(not(feature = "verify"))]
use super::environment;
use super::fallible::Fallible;
use super::info::Info;
#[cfg(debug_assertions)]
use super::inputs::contains;
use super::inputs::{TensorInput, lost, note, primals, protect, version};
use super::outputs::Visitor;
use super::rules::LayerRules;
#[cfg(feature = "verify")]
use super::verify;
use crate::error::{Error, Result};
#[cfg(debug_assertions)]
use crate::graph::hidden;
use crate::graph::{
    AnyTensor, ForwardGuard, NodeRef, Tensor, beside, is_grad_enabled, is_observed, protected,
};
use crate::ops::failed;
use crate::ops::trace::{self, InLayer, Layer as Traced, Note};

/// What forward's context notes of a call where the caller's caller stands; [`Forward::start`] starts it.
#[inline]
#[must_use]
#[track_caller]
pub fn start<'a>(rules: &'static LayerRules, inputs: &'a [&'a dyn TensorInput]) -> Forward<'a> {
    start_at(Location::caller(), rules, inputs)
}

/// The same for a call at a place that is known.
#[inline]
#[must_use]
pub fn start_at<'a>(
    place: &'static Location<'static>,
    rules: &'static LayerRules,
    inputs: &'a [&'a dyn TensorInput],
) -> Forward<'a> {
    Forward::new(rules, inputs, place)
}

impl Forward<'_> {
    /// The call starts: recording is off until it ends.
    // Compiled once, in the library, and written where the context stands: what is moved there would be
    // read wider than it was written, and the processor waits for that.
    pub fn start(&mut self) -> &mut Self {
        let before = protected();
        let wants = |(position, input): (usize, &&dyn TensorInput)| {
            self.rules.info.is_differentiable(position) && input.wants_gradient()
        };
        if !is_grad_enabled() {
            protect(self.inputs, self.rules.info);
        } else if self.inputs.iter().enumerate().any(wants) {
            note(&mut self.own.call.insert(Call::default()).inputs, self.inputs, self.rules);
            self.own.traced = InLayer::begin();
            // What the environment asks for is refused here where this build cannot do it.
            #[cfg(not(feature = "verify"))]
            if let Err(refused) = environment::refuse(self.rules.info.name) {
                self.own.broken = Some(refused);
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
    let info = forward.rules.info;
    let wanted = |&position: &usize| {
        info.is_differentiable(position) && forward.inputs[position].wants_gradient()
    };
    let wanted = (0..info.inputs).find(wanted).and_then(|position| info.input_name(position));
    let name = wanted.unwrap_or_default();
    Err(Error::Unsupported {
        op: info.name,
        why: format!(
            "the input `{name}` wants a gradient (stop_gradient is false), but this op has no \
             backward; give `{name}.detach()`, call it under `no_grad()`, or declare \
             `#[stop_gradient] {name}`"
        ),
    })
}

/// A parameter of a type parameter may turn out to be a tensor: then its gradient would be lost.
pub fn check_plain<V: ?Sized>(op: &'static str, _: &V, parameter: &'static str) -> Result<()> {
    let held = type_name::<V>();
    if !holds_tensor(held) {
        return Ok(());
    }
    Err(Error::Unsupported {
        op,
        why: format!(
            "the plain parameter `{parameter}` was given a tensor (`{held}`), whose gradient would \
             be lost; a tensor input is declared as `&Tensor<T>`"
        ),
    })
}

/// Whether a type holds a tensor, by its name: nothing else is known of every type at run time.
fn holds_tensor(name: &str) -> bool {
    const HOLDERS: [&str; 12] = [
        "core::option::Option<",
        "core::result::Result<",
        "core::cell::Cell<",
        "core::cell::RefCell<",
        "core::slice::iter::Iter<",
        "alloc::vec::Vec<",
        "alloc::vec::into_iter::IntoIter<",
        "alloc::collections::vec_deque::VecDeque<",
        "alloc::boxed::Box<",
        "alloc::sync::Arc<",
        "alloc::rc::Rc<",
        "std::collections::hash::map::HashMap<",
    ];
    let name = name.trim_start();
    if let Some(inner) = ["&", "mut ", "["].iter().find_map(|outer| name.strip_prefix(outer)) {
        return holds_tensor(inner);
    }
    let holder = HOLDERS.iter().copied().chain(["("]);
    if let Some(inner) = holder.into_iter().find_map(|outer| name.strip_prefix(outer)) {
        return parts(inner).any(holds_tensor);
    }
    let tensor = type_name::<Tensor<f32>>();
    let tensor = tensor.split('<').next().unwrap_or(tensor);
    // Of `Tensor<f32>` the compiler writes no element, for that is the one it has by default.
    name.strip_prefix(tensor).is_some_and(|rest| match rest.strip_prefix('<') {
        Some(element) => element.starts_with("f32>") || element.starts_with("f64>"),
        None => !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'),
    })
}

/// What commas separate in the name of a type, up to the end of what holds it.
fn parts(inner: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let mut before = ' ';
    inner.split(move |c| {
        match c {
            '<' | '(' | '[' => depth += 1,
            // Not that of an arrow.
            '>' if before == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        before = c;
        // What follows the end names no type.
        depth < 0 || depth == 0 && c == ','
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

#[cfg(debug_assertions)]
impl Forward<'_> {
    /// An error where forward read a tensor that wants a gradient and is none of the inputs.
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

impl Forward<'_> {
    /// Forward runs no longer; an error if an input was changed meanwhile.
    fn leave(&mut self) -> Result<()> {
        let Some(running) = self.own.running.take() else { return Ok(()) };
        running.check(|input| version(self.inputs, input)).map_err(|changed| *changed)
    }

    /// Forward is done: checks what it did, and records.
    fn finish(&mut self, outputs: &mut Visitor<'_>) -> Result<()> {
        self.leave()?;
        let (mut traced, mut marked) = (None, Vec::new());
        if self.own.is_rare() {
            traced = self.own.traced.take().map(InLayer::end);
            marked = self.own.non_differentiable.take().unwrap_or_default();
        }
        if let Some(broken) = self.own.broken.take() {
            return Err(*broken);
        }
        #[cfg(debug_assertions)]
        self.check_hidden()?;
        check_marks(self.rules.info, outputs, &marked)?;
        if !self.is_recorded() {
            self.release(outputs);
            return Ok(());
        }
        let returned = traced.as_ref().map(|_| outputs.addresses());
        let node = self.record(outputs, &marked)?;
        match &marked[..] {
            [] => outputs.attach(node),
            marked => outputs.attach_unmarked(&node, marked, self.inputs),
        }
        #[cfg(feature = "verify")]
        verify::note(outputs);
        if let (Some(forward), Some(returned)) = (traced, returned) {
            let layer = Traced { name: self.rules.info.name, forward, returned };
            let inputs = self.inputs.iter().flat_map(|input| primals(*input)).collect();
            let (call, outputs) = (trace::Call::Layer(Box::new(layer)), outputs.kept());
            trace::note(Note { call, inputs, outputs, caller: self.location });
        }
        Ok(())
    }

    #[inline(never)]
    fn release(&self, outputs: &mut Visitor<'_>) {
        outputs.release(self.inputs, lost(self.rules.info, self.inputs, self.location));
    }

    /// What the op declares, forward must have given.
    #[inline]
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

    /// The node of a call, with its outputs and those that are marked as not differentiable.
    fn record(&mut self, outputs: &Visitor<'_>, marked: &[AnyTensor]) -> Result<NodeRef> {
        self.check_declared()?;
        let attrs = self.own.attrs.take();
        let Some(call) = &mut self.own.call else { unreachable!("the call is recorded") };
        outputs.describe(&mut call.inputs.layout);
        call.saved.assign_roles(&call.inputs.addresses, outputs, marked);
        let node = call.record(self.rules, attrs, self.location);
        self.own.call = None;
        if is_observed() {
            show_beside(&node, self.rules.info, self.inputs);
        }
        Ok(node)
    }
}

/// Shows an anomaly scope the inputs that are never differentiated.
#[cold]
fn show_beside(node: &NodeRef, info: &Info, inputs: &[&dyn TensorInput]) {
    for (position, input) in inputs.iter().enumerate() {
        if info.is_differentiable(position) {
            continue;
        }
        let (name, tensors) = (info.input_name(position).unwrap_or_default(), primals(*input));
        for (i, tensor) in tensors.iter().enumerate() {
            let alone = tensors.len() == 1;
            let name = if alone { name.to_owned() } else { format!("{name}[{i}]") };
            beside(node, name, tensor);
        }
    }
}

fn check_marks(info: &Info, outputs: &Visitor<'_>, marked: &[AnyTensor]) -> Result<()> {
    for (position, tensor) in marked.iter().enumerate() {
        if !outputs.is_output(tensor.address()) {
            return Err(Error::Context {
                op: info.name,
                call: "mark_non_differentiable",
                why: format!("tensor {position} is not an output of the op; mark outputs only"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::*;

    #[test]
    fn tensors_are_seen_in_the_names_of_types() {
        fn holds<T: ?Sized>() -> bool {
            holds_tensor(type_name::<T>())
        }
        type T64 = Tensor<f64>;
        assert!(holds::<T64>() && holds::<&Tensor>() && holds::<&mut T64>());
        assert!(holds::<Option<&T64>>() && holds::<Vec<T64>>() && holds::<&[&T64]>());
        assert!(holds::<[T64; 2]>() && holds::<Box<[T64]>>());
        assert!(holds::<(f64, T64)>() && holds::<(f64, (Vec<u8>, &T64), u8)>());
        assert!(holds::<Option<(fn(f64) -> (u8, f64), T64)>>());
        assert!(holds::<std::vec::IntoIter<T64>>() && holds::<std::slice::Iter<'static, T64>>());
        assert!(holds::<std::collections::HashMap<String, T64>>());
        assert!(!holds::<f64>() && !holds::<Tensor<i64>>() && !holds::<(f64, Vec<Tensor<bool>>)>());
        assert!(!holds::<fn(&T64) -> T64>() && !holds::<Box<dyn Fn(&T64) -> T64>>());
        assert!(!holds::<(f64, fn(&T64, T64) -> T64)>());
        assert!(!holds::<PhantomData<T64>>());
    }
}
