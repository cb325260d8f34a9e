//! Ops whose rule is a function of typed tensors.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::any::{AnyTensor, Element};
use super::node::{Node, NodeRef, Op, Pull, Push, Sink, Slots, only};
use super::parts::{Edge, Entries, Plain, State};
use super::saved::{Saves, typed};
use super::shapes::output_shapes;
use super::tensor::Tensor;
use crate::array::{Shape, Value};
use crate::error::Result;

/// The inputs of a typed rule: an array where their number is fixed, a vector for a list.
pub(crate) trait EdgeList: IntoIterator<Item = Edge> + 'static {
    /// Which inputs want a gradient.
    type Wants;
    /// The gradients, one place for each input.
    type Grads<T: Element>: AsMut<[Option<Tensor<T>>]>;

    fn wants(wants: impl ExactSizeIterator<Item = bool>) -> Self::Wants;
}

impl<const N: usize> EdgeList for [Edge; N] {
    type Wants = [bool; N];
    type Grads<T: Element> = [Option<Tensor<T>>; N];

    #[inline]
    fn wants(wants: impl ExactSizeIterator<Item = bool>) -> [bool; N] {
        let mut all = [false; N];
        all.iter_mut().zip(wants).for_each(|(place, wants)| *place = wants);
        all
    }
}

impl EdgeList for Vec<Edge> {
    type Wants = Vec<bool>;
    type Grads<T: Element> = Vec<Option<Tensor<T>>>;

    fn wants(wants: impl ExactSizeIterator<Item = bool>) -> Vec<bool> {
        wants.collect()
    }
}

/// An op with inputs of elements `T`, one output of elements `U`, and a rule of these types.
pub(crate) struct TypedOp<T, U, S, E>(PhantomData<fn() -> (T, U, S, E)>);

/// What differs from call to call.
struct TypedCall<T: Element, U: Element, S: Saves, E: EdgeList> {
    name: &'static str,
    pull: PullFn<T, U, S, E>,
    plain: S::Plain,
}

/// From what was saved, the output's gradient and which inputs want one: the inputs' gradients.
pub(crate) type PullFn<T, U, S, E> =
    fn(<S as Saves>::Read, Tensor<U>, <E as EdgeList>::Wants) -> Result<<E as EdgeList>::Grads<T>>;

impl<T: Element, U: Element, S: Saves + 'static, E: EdgeList> TypedOp<T, U, S, E> {
    const OP: &'static dyn Op = &Self(PhantomData);

    /// The node of a call.
    pub(crate) fn record(
        name: &'static str,
        location: &'static Location<'static>,
        edges: E,
        saved: S,
        pull: PullFn<T, U, S, E>,
    ) -> NodeRef {
        let mut entries = Entries::new();
        let plain = saved.save(&mut entries);
        let call: Plain = Arc::new(TypedCall::<T, U, S, E> { name, pull, plain });
        NodeRef::record(
            Self::OP,
            edges.into_iter().collect(),
            State::new(Some(call), &mut entries),
            location,
        )
    }

    fn call(node: &Node) -> &TypedCall<T, U, S, E> {
        node.attrs().unwrap_or_else(|| unreachable!("it was recorded with the op"))
    }
}

impl<T: Element, U: Element, S: Saves + 'static, E: EdgeList> Op for TypedOp<T, U, S, E> {
    fn name(&self) -> &'static str {
        "an op"
    }

    fn name_of(&self, node: &Node) -> &'static str {
        Self::call(node).name
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let call = Self::call(pull.node);
        let read = S::read(&call.plain, &mut pull.read()?, &pull.at())?;
        let edges = pull.node.edges();
        let wants = E::wants(edges.iter().map(|edge| pull.wants(edge)));
        let mut grads = (call.pull)(read, typed(only(grads)), wants)?;
        deliver(edges, grads.as_mut(), pull.sink)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let call = Self::call(push.node);
        if const { S::PUSHES } {
            let Some(shape) = output_shape(push.node) else { return Ok(None) };
            let (from, tangents) = (&mut push.read()?, (&push.tangents, &shape[..]));
            let pushed = S::tangent(&call.plain, from, &push.at(), tangents)?;
            return Ok(pushed.map(one));
        }
        if const { !S::ELEMENTWISE } {
            return Ok(None);
        }
        let read = S::read(&call.plain, &mut push.read()?, &push.at())?;
        let Some(tangent) = push.tangents[0].take().and_then(U::unwrap) else { return Ok(None) };
        let mut pushed = (call.pull)(read, tangent, E::wants([true].into_iter()))?;
        Ok(Some(wrapped(pushed.as_mut())))
    }
}

// One function for all ops on elements of a type.
#[inline]
pub(crate) fn deliver<'g, T: Element>(
    edges: &'g [Edge],
    grads: &mut [Option<Tensor<T>>],
    sink: &mut dyn Sink<'g>,
) -> Result<()> {
    for (edge, grad) in edges.iter().zip(grads) {
        if let Some(grad) = grad.take() {
            sink.deliver(edge, T::wrap(grad))?;
        }
    }
    Ok(())
}

// These are compiled once, whatever the types of an op.
fn output_shape(node: &NodeRef) -> Option<Shape> {
    let (_, shape) = output_shapes(node)?.into_iter().next()??;
    Some(shape)
}

fn one(tangent: AnyTensor) -> Slots {
    Slots::from_elem(Some(tangent), 1)
}

fn wrapped<T: Element>(tangents: &mut [Option<Tensor<T>>]) -> Slots {
    tangents.iter_mut().map(|tangent| tangent.take().map(T::wrap)).collect()
}

/// The result of an op as an output of the node that differentiates it.
pub(crate) fn record<T: Element, U: Element, S: Saves + 'static, const N: usize>(
    name: &'static str,
    location: &'static Location<'static>,
    inputs: [&Tensor<T>; N],
    value: Value<U>,
    saved: S,
    pull: PullFn<T, U, S, [Edge; N]>,
) -> Tensor<U> {
    record_edges(name, location, inputs.map(Tensor::edge), value, saved, pull)
}

/// [`record`] with the edges at hand: of a list of inputs, or of inputs that were consumed.
pub(crate) fn record_edges<T: Element, U: Element, S: Saves + 'static, E: EdgeList>(
    name: &'static str,
    location: &'static Location<'static>,
    edges: E,
    value: Value<U>,
    saved: S,
    pull: PullFn<T, U, S, E>,
) -> Tensor<U> {
    // Rules of elements without gradients are not even compiled.
    if const { !T::DTYPE.is_float() } {
        unreachable!("{name}: elements of type {} have no gradient", T::DTYPE);
    }
    Tensor::output(value, Some(TypedOp::record(name, location, edges, saved, pull)))
}
