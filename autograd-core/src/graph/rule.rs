//! Results of ops: outputs of nodes whose rule is a function of typed tensors, and those of ops that are not
//! recorded, with why they are outside the graph.

use std::sync::Arc;

use smallvec::SmallVec;

use super::any::{AnyTensor, Element};
use super::context::Place;
#[cfg(debug_assertions)]
use super::context::{Events, Recording};
use super::lost_gradients::{Lost, no_derivative};
use super::mode;
#[cfg(debug_assertions)]
use super::node::notify;
use super::node::{Node, NodeRef, Op, Pull, Push, Slots, only};
use super::node_parts::{Edges, Entries, Plain, Saved, SavedState};
use super::output_shapes::output_shapes;
use super::saved_reader::{SavedReader, typed};
use super::tensor::Tensor;
use crate::array::Value;
use crate::error::Result;

/// The rule of a call, with its saved tensors. Its closures hold whatever else it needs.
pub(crate) struct Rule {
    saved: Entries,
    pull: Box<Pulls>,
    push: Option<Box<Pushes>>,
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
        let deliver_all =
            move |saved: &mut SavedReader<'_>, grad, wants: &[bool], deliver: &mut Deliver<'_>| {
                delivered(pull(saved, typed(grad), wants), deliver)
            };
        Self { saved: saved.into_iter().collect(), pull: Box::new(deliver_all), push: None }
    }

    pub(crate) fn with_push<T: Element>(
        mut self,
        push: impl Fn(&mut SavedReader<'_>, &[Option<Tensor<T>>], &[usize]) -> Result<Option<Tensor<T>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.push = Some(Box::new(move |saved, tangents, shape| {
            wrapped(push(saved, &all_typed(tangents), shape))
        }));
        self
    }

    pub(crate) fn record(self, name: &'static str, location: Place, edges: Edges) -> NodeRef {
        let Self { mut saved, pull, push } = self;
        let call: Plain = Arc::new(RuledCall { name, pull, push });
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
    fn rule(node: &Node) -> &RuledCall {
        node.attrs().unwrap_or_else(|| unreachable!("it was recorded with a rule"))
    }
}

impl Op for Ruled {
    fn name(&self) -> &'static str {
        "an op"
    }

    fn name_of(&self, node: &Node) -> &'static str {
        Self::rule(node).name
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let edges = pull.node.edges();
        let wants: SmallVec<[bool; 4]> = edges.iter().map(|edge| pull.wants(edge)).collect();
        let rule = Self::rule(pull.node);
        let saved = &mut pull.read()?;
        (rule.pull)(saved, only(grads), &wants, &mut |input, grad| {
            pull.sink.deliver(&edges[input], grad)
        })
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let Some(tangent_of) = &Self::rule(push.node).push else { return Ok(None) };
        let shape = output_shapes(push.node).and_then(|shapes| shapes.into_iter().next()?);
        let Some((_, shape)) = shape else { return Ok(None) };
        let tangent = tangent_of(&mut push.read()?, &push.tangents, &shape)?;
        Ok(tangent.map(|tangent| Slots::from_elem(Some(tangent), 1)))
    }
}

/// The result of an op: the output of a node with this rule, if the op is recorded.
pub(crate) fn finish<T: Element, U: Element>(
    name: &'static str,
    caller: Place,
    inputs: &[&Tensor<T>],
    value: Value<U>,
    rule: impl FnOnce() -> Rule,
) -> Tensor<U> {
    // Rules for element types without gradients are not even instantiated.
    let rule =
        if const { T::DTYPE.is_float() } && would_record(inputs) { Some(rule()) } else { None };
    finished(name, caller, inputs, value, rule)
}

fn finished<T: Element, U: Element>(
    name: &'static str,
    caller: Place,
    inputs: &[&Tensor<T>],
    value: Value<U>,
    rule: Option<Rule>,
) -> Tensor<U> {
    let Some(rule) = rule else { return unrecorded(name, caller, inputs, value) };
    Tensor::output(value, rule.record(name, caller, Edges::of(inputs)))
}

fn would_record<T: Element>(inputs: &[&Tensor<T>]) -> bool {
    inputs.iter().any(|x| x.would_record())
}

pub(crate) fn unrecorded<T: Element, U: Element>(
    name: &'static str,
    caller: Place,
    inputs: &[&Tensor<T>],
    value: Value<U>,
) -> Tensor<U> {
    let lost = Lost::of_all(name, caller, inputs.iter().copied());
    Tensor::from_value(value).with_lost(lost)
}

impl Lost {
    /// Why the result of an unrecorded op on this input is outside the graph.
    #[inline]
    pub(crate) fn of<T: Element>(op: &'static str, at: Place, input: &Tensor<T>) -> Self {
        Self::of_all(op, at, [input])
    }

    #[inline]
    pub(crate) fn of_all<'t, T: Element>(
        op: &'static str,
        at: Place,
        inputs: impl IntoIterator<Item = &'t Tensor<T>>,
    ) -> Self {
        let (mut lost, mut wants) = (Self::NONE, false);
        inputs.into_iter().for_each(|input| match input.stopped_by() {
            Some(before) => lost = lost.and(before),
            None => {
                wants = true;
                #[cfg(debug_assertions)]
                if mode::recording() == Recording::CustomOp {
                    let read = (input.address(), input.shape());
                    notify(Events::UNRECORDED, |observer| observer.unrecorded(read, op, at));
                }
            }
        });
        if wants && mode::loses_gradients() { lost.and_unrecorded(op, at) } else { lost }
    }

    #[inline]
    pub(crate) fn without_derivative<T: Element>(
        op: &'static str,
        at: Place,
        input: &Tensor<T>,
    ) -> Self {
        input.stopped_by().unwrap_or_else(|| no_derivative(op, at))
    }
}
