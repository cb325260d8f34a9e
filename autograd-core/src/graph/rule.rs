//! Ops whose rule is a function of typed tensors.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::any::{AnyTensor, Element};
use super::node::{Node, NodeRef, Op, Pull, Push, Slots, only};
use super::node_parts::{Edges, Entries, Plain, Saved, SavedState};
use super::output_shapes::output_shapes;
use super::saved_reader::{SavedReader, typed};
use super::tensor::Tensor;
use super::unrecorded::unrecorded;
use crate::array::Value;
use crate::error::Result;

/// The rule of a call, with its saved tensors. Its closures hold whatever else it needs.
pub(crate) struct Rule {
    saved: Entries,
    call: RuledCall,
}

struct RuledCall {
    name: &'static str,
    pull: Box<Pulls>,
    push: Option<Box<Pushes>>,
}

/// From the saved tensors, the output's gradient and a flag for each input that wants a gradient, computes
/// the inputs' gradients and delivers each with the input's position.
type Pulls =
    dyn Fn(&mut SavedReader<'_>, AnyTensor, &[bool], &mut Deliver<'_>) -> Result<()> + Send + Sync;
type Deliver<'a> = dyn FnMut(usize, AnyTensor) -> Result<()> + 'a;
/// From the saved tensors, the inputs' tangents, of which there is at least one, and the output's shape,
/// computes the output's tangent; `None` leaves that to the transposed backward.
type Pushes =
    dyn Fn(&mut SavedReader<'_>, &Slots, &[usize]) -> Result<Option<AnyTensor>> + Send + Sync;

impl Rule {
    pub(crate) fn new<T: Element, U: Element, G: AsMut<[Option<Tensor<T>>]>>(
        saved: impl IntoIterator<Item = Saved>,
        pull: impl Fn(&mut SavedReader<'_>, Tensor<U>, &[bool]) -> Result<G> + Send + Sync + 'static,
    ) -> Self {
        let pull =
            move |saved: &mut SavedReader<'_>, grad, wants: &[bool], deliver: &mut Deliver<'_>| {
                delivered(pull(saved, typed(grad), wants), deliver)
            };
        let call = RuledCall { name: "", pull: Box::new(pull), push: None };
        Self { saved: saved.into_iter().collect(), call }
    }

    pub(crate) fn with_push<T: Element>(
        mut self,
        push: impl Fn(&mut SavedReader<'_>, &[Option<Tensor<T>>], &[usize]) -> Result<Option<Tensor<T>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.call.push = Some(Box::new(move |saved, tangents, shape| {
            wrapped(push(saved, &all_typed(tangents), shape))
        }));
        self
    }

    pub(crate) fn record(
        self,
        name: &'static str,
        location: &'static Location<'static>,
        edges: Edges,
    ) -> NodeRef {
        let Self { mut saved, call } = self;
        let call: Plain = Arc::new(RuledCall { name, ..call });
        let state = SavedState::new(Some(call), &mut saved);
        NodeRef::record(&Ruled, edges, state, location)
    }
}

// These are instantiated once for each element type; a rule's closures, once for each rule.
fn all_typed<T: Element>(tangents: &Slots) -> Vec<Option<Tensor<T>>> {
    tangents.iter().map(|tangent| T::peek(tangent.as_ref()?).cloned()).collect()
}

fn delivered<T: Element, G: AsMut<[Option<Tensor<T>>]>>(
    grads: Result<G>,
    deliver: &mut Deliver<'_>,
) -> Result<()> {
    for (position, grad) in grads?.as_mut().iter_mut().enumerate() {
        if let Some(grad) = grad.take() {
            deliver(position, T::wrap(grad))?;
        }
    }
    Ok(())
}

fn wrapped<T: Element>(tangent: Result<Option<Tensor<T>>>) -> Result<Option<AnyTensor>> {
    Ok(tangent?.map(T::wrap))
}

struct Ruled;

impl Ruled {
    fn call(node: &Node) -> &RuledCall {
        node.attrs().unwrap_or_else(|| unreachable!("it was recorded with a rule"))
    }
}

impl Op for Ruled {
    fn name(&self) -> &'static str {
        "an op"
    }

    fn name_of(&self, node: &Node) -> &'static str {
        Self::call(node).name
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let edges = pull.node.edges();
        let wants: SmallVec<[bool; 4]> = edges.iter().map(|edge| pull.wants(edge)).collect();
        let call = Self::call(pull.node);
        let saved = &mut pull.read()?;
        (call.pull)(saved, only(grads), &wants, &mut |input, grad| {
            pull.sink.deliver(&edges[input], grad)
        })
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let Some(rule) = &Self::call(push.node).push else { return Ok(None) };
        let shape = output_shapes(push.node).and_then(|shapes| shapes.into_iter().next()?);
        let Some((_, shape)) = shape else { return Ok(None) };
        let tangent = rule(&mut push.read()?, &push.tangents, &shape)?;
        Ok(tangent.map(|tangent| Slots::from_elem(Some(tangent), 1)))
    }
}

/// The result of an op: the output of a node with this rule, if the op is recorded.
pub(crate) fn finish<T: Element, U: Element>(
    name: &'static str,
    caller: &'static Location<'static>,
    inputs: &[&Tensor<T>],
    value: Value<U>,
    rule: impl FnOnce() -> Rule,
) -> Tensor<U> {
    // Rules for element types without gradients are not even instantiated.
    let rule =
        if const { T::DTYPE.is_float() } && is_recorded(inputs) { Some(rule()) } else { None };
    finished(name, caller, inputs, value, rule)
}

fn finished<T: Element, U: Element>(
    name: &'static str,
    caller: &'static Location<'static>,
    inputs: &[&Tensor<T>],
    value: Value<U>,
    rule: Option<Rule>,
) -> Tensor<U> {
    let Some(rule) = rule else { return unrecorded(name, caller, inputs, value) };
    Tensor::output(value, Some(rule.record(name, caller, Edges::of(inputs))))
}

fn is_recorded<T: Element>(inputs: &[&Tensor<T>]) -> bool {
    inputs.iter().any(|x| x.is_recorded())
}
