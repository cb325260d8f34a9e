//! Finds the first op that computes a NaN or an infinity.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Destination, Edge, Events, Key, Node, NodeRef, Observer, Observing, Range, Token,
    for_any, observer, observes,
};

#[derive(Default)]
struct State {
    first: Option<Error>,
    /// The ranges of nodes' outputs, by node and slot.
    ranges: HashMap<(Key, u32), Range>,
    /// The ranges of inputs without a gradient, by their numbers.
    constants: HashMap<u32, Range>,
    /// Descriptions of inputs to which a node has no edge.
    untracked: HashMap<Key, Vec<String>>,
    /// The tokens of the keys, which prevent reuse of the keys.
    tokens: Vec<Token>,
}

/// The scope of [`detect_anomaly`], on its thread.
#[must_use = "nothing is looked for after the scope is dropped: `let scope = detect_anomaly();`"]
pub struct AnomalyScope {
    outer: Option<Rc<Anomalies>>,
    observing: Observing<Anomalies>,
}

/// Finds the first number that is not finite, until the scope is dropped.
///
/// In forward, that is the first recorded op on this thread with a NaN or an infinity in its result.
/// [`AnomalyScope::check`] returns it, and so does the next backward, which then does not run. In backward,
/// it is the first op whose rule computes such a gradient; that backward returns it and writes no gradient.
/// The error names the op, the line of its call, and the ranges of all its tensor inputs.
///
/// The check takes a pass over every result, and ranges are kept until the scope ends: it is for debugging. Ops
/// not recorded are not checked; an intended infinity (a mask) is reported. Drop scopes in reverse order.
///
/// ```
/// use autograd_core::{Tensor, detect_anomaly};
///
/// let x = Tensor::from([4.0, 0.0, -1.0]);
/// x.set_stop_gradient(false);
///
/// let scope = detect_anomaly();
/// let loss = (x.sqrt() * 2.0).sum();
/// let error = scope.check().unwrap_err().to_string();
/// assert!(error.starts_with("sqrt (called at "));
/// assert!(error.contains("the result has 1 NaN, the first at [2] of shape [3]"));
/// assert!(error.contains("input 0: shape [3], from -1.0 to 4.0"));
/// assert!(loss.backward().is_err());
/// ```
#[doc(alias = "anomaly_mode")]
pub fn detect_anomaly() -> AnomalyScope {
    AnomalyScope { outer: observer(), observing: Observing::start(Anomalies::default()) }
}

impl AnomalyScope {
    /// Checks that all numbers were finite so far.
    ///
    /// ```
    /// use autograd_core::{Error, Tensor, detect_anomaly};
    ///
    /// let x = Tensor::from([4.0, 0.5]);
    /// x.set_stop_gradient(false);
    /// let scope = detect_anomaly();
    /// let y = x.ln();
    /// assert!(scope.check().is_ok());
    /// let z = y.ln();
    /// assert!(matches!(scope.check(), Err(Error::NotFinite { op: "ln", .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFinite`] for the first number that was not.
    pub fn check(&self) -> Result<()> {
        check()
    }
}

impl Drop for AnomalyScope {
    fn drop(&mut self) {
        // A finding of a nested scope is one of the outer scope too.
        if let Some(outer) = &self.outer {
            let inner = self.observing.0.borrow_mut().first.take();
            let first = &mut outer.0.borrow_mut().first;
            *first = first.take().or(inner);
        }
    }
}

pub(super) fn check() -> Result<()> {
    if !observes(Events::VALUES) {
        return Ok(());
    }
    let found = observer::<Anomalies>().and_then(|it| it.0.borrow().first.clone());
    found.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Anomalies(RefCell<State>);

impl Observer for Anomalies {
    fn events(&self) -> Events {
        Events::OUTPUTS.and(Events::VALUES)
    }

    fn output(&self, node: &NodeRef, slot: u32, _: (DType, &[usize]), value: Option<&dyn Any>) {
        let Some(range) = value.and_then(Range::of) else { return };
        let mut state = self.0.borrow_mut();
        if !range.is_finite() && state.first.is_none() {
            state.find(node, format!("the result has {}", range.broken()), None);
        }
        let key = state.key_of(node);
        state.ranges.insert((key, slot), range);
    }

    fn constant(&self, value: &dyn Any) -> u32 {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        let Some(range) = Range::of(value) else { return 0 };
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.0.borrow_mut().constants.insert(number, range);
        number
    }

    fn untracked(&self, node: &NodeRef, name: String, input: &AnyTensor) {
        let Some(range) = range(input) else { return };
        let mut state = self.0.borrow_mut();
        let key = state.key_of(node);
        state.untracked.entry(key).or_default().push(format!("input `{name}`: {range}"));
    }
}

impl State {
    fn key_of(&mut self, node: &Node) -> Key {
        let token = node.token();
        let key = token.key();
        self.tokens.push(token);
        key
    }

    fn find(
        &mut self,
        node: &Node,
        found: String,
        gradients: impl IntoIterator<Item = String>,
    ) -> Error {
        let inputs = gradients.into_iter().chain(self.inputs(node)).collect();
        let (op, location) = (node.name(), node.location);
        self.first.insert(Error::NotFinite { op, found, inputs, location }).clone()
    }

    fn inputs(&self, node: &Node) -> impl Iterator<Item = String> {
        let untracked = node.key().and_then(|key| self.untracked.get(&key)).into_iter().flatten();
        let describe = |(i, edge): (usize, &Edge)| match edge.to() {
            Destination::None(absent) => match self.constants.get(&absent.range_id) {
                Some(range) => format!("input {i}: {range}, wants no gradient"),
                None => format!("input {i}: wants no gradient"),
            },
            Destination::Leaf(leaf) => match range(leaf) {
                Some(range) => format!("input {i}: {range}"),
                None => format!("input {i}: no floats"),
            },
            Destination::Node(from, slot) => {
                let (name, place) = (from.name(), from.location);
                match from.key().and_then(|key| self.ranges.get(&(key, slot))) {
                    Some(range) => format!("input {i}: {range}, from {name} at {place}"),
                    None => format!("input {i}: from {name} at {place}, outside this scope"),
                }
            }
        };
        node.edges().iter().enumerate().map(describe).chain(untracked.cloned())
    }
}

fn range(tensor: &AnyTensor) -> Option<Range> {
    for_any!(tensor, t => Range::of(&*t.read()))
}

pub(super) fn check_gradients(
    node: &Node,
    outputs: &[Option<AnyTensor>],
    inputs: &[Option<AnyTensor>],
) -> Result<()> {
    let Some(anomalies) = observer::<Anomalies>() else { return Ok(()) };
    check()?;
    let broken = |grads: &[Option<AnyTensor>]| {
        let mut ranges =
            grads.iter().enumerate().filter_map(|(i, grad)| Some((i, range(grad.as_ref()?)?)));
        ranges.find(|(_, range)| !range.is_finite()).map(|(i, range)| (i, range.broken()))
    };
    let found = match (broken(outputs), broken(inputs)) {
        (Some((i, broken)), _) => {
            format!("the gradient of its output {i} came with {broken} (a seed or a hook)")
        }
        (None, Some((i, broken))) => {
            format!("backward gave its input {i} a gradient with {broken}")
        }
        (None, None) => return Ok(()),
    };
    let outputs = outputs.iter().enumerate();
    let outputs = outputs.filter_map(|(i, grad)| {
        Some(format!("gradient of output {i}: {}", range(grad.as_ref()?)?))
    });
    Err(anomalies.0.borrow_mut().find(node, found, outputs))
}
