//! The first NaN or infinity, found where it comes up.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, Key, Node, Observer, Range, Seen, To, Token, Watching, for_any, is_observed,
    observe, watch,
};

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

#[derive(Default)]
struct State {
    first: Option<Error>,
    /// What the outputs of nodes were, by node and output.
    ranges: HashMap<(Key, u32), Range>,
    /// What inputs without a gradient were, by their numbers.
    constants: HashMap<u32, Range>,
    /// Inputs of nodes that have no edge, in words.
    beside: HashMap<Key, Vec<String>>,
    /// Those of the keys, which keep them from being other nodes'.
    tokens: Vec<Token>,
}

/// While it lives, recorded ops and backwards on this thread are looked through for NaN and
/// infinities. Made by [`detect_anomaly`].
#[must_use = "nothing is looked for after the scope is dropped: `let scope = detect_anomaly();`"]
pub struct AnomalyScope {
    outer: State,
    observer: Option<Observer>,
    _watching: Watching,
    // The scope belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

/// Finds the first number that is not finite, until the scope is dropped.
///
/// In forward, that is the first recorded op on this thread with a NaN or an infinity in its
/// result; [`AnomalyScope::check`] gives it, and so does the next backward, which does not run
/// then. In backward, it is the first op whose rule makes a gradient with one; that backward ends
/// with it and writes no gradient. The error names the op, the line it was called at, and the
/// ranges of its tensor inputs, also of those that want no gradient.
///
/// Looking takes a pass over every result, and ranges are kept until the scope ends: it is for
/// finding out, not for training. What no gradient is wanted of is not recorded and so not looked
/// at, and an infinity that is meant (a mask) is found too.
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
    AnomalyScope {
        outer: STATE.take(),
        observer: observe(Some(see)),
        _watching: watch(),
        _not_send: PhantomData,
    }
}

impl AnomalyScope {
    /// Whether all was finite up to now.
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
        observe(self.observer);
        let inner = STATE.replace(std::mem::take(&mut self.outer));
        STATE.with_borrow_mut(|outer| {
            // A scope inside another one is part of it.
            if self.observer.is_some() && outer.first.is_none() {
                outer.first = inner.first;
            }
        });
    }
}

/// The first finding, if a scope has made one.
pub(super) fn check() -> Result<()> {
    if !is_observed() {
        return Ok(());
    }
    STATE.with_borrow(|state| state.first.clone()).map_or(Ok(()), Err)
}

fn see(seen: Seen<'_>) {
    STATE.with_borrow_mut(|state| match seen {
        Seen::Constant(number, range) => {
            state.constants.insert(number, range);
        }
        Seen::Beside(node, name, range) => {
            let key = state.key_of(node);
            state.beside.entry(key).or_default().push(format!("input `{name}`: {range}"));
        }
        Seen::Output(node, slot, range) => {
            if !range.is_finite() && state.first.is_none() {
                state.find(node, format!("the result has {}", range.broken()), None);
            }
            let key = state.key_of(node);
            state.ranges.insert((key, slot), range);
        }
    });
}

impl State {
    fn key_of(&mut self, node: &Node) -> Key {
        let token = node.token();
        let key = token.key();
        self.tokens.push(token);
        key
    }

    /// Notes what was found first.
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

    /// The inputs of a node, in words.
    fn inputs(&self, node: &Node) -> impl Iterator<Item = String> {
        let beside = node.key().and_then(|key| self.beside.get(&key)).into_iter().flatten();
        let describe = |(i, edge): (usize, &Edge)| match edge.to() {
            To::None(absent) => match self.constants.get(&absent.seen) {
                Some(range) => format!("input {i}: {range}, wants no gradient"),
                None => format!("input {i}: wants no gradient"),
            },
            To::Leaf(leaf) => match range(leaf) {
                Some(range) => format!("input {i}: {range}"),
                None => format!("input {i}: no floats"),
            },
            To::Node(from, slot) => {
                let (name, place) = (from.name(), from.location);
                match from.key().and_then(|key| self.ranges.get(&(key, slot))) {
                    Some(range) => format!("input {i}: {range}, from {name} at {place}"),
                    None => format!("input {i}: from {name} at {place}, outside this scope"),
                }
            }
        };
        node.edges().iter().enumerate().map(describe).chain(beside.cloned())
    }
}

fn range(tensor: &AnyTensor) -> Option<Range> {
    for_any!(tensor, t => Range::of(&*t.read()))
}

/// Looks at what the rule of a node made of the gradients of its outputs.
pub(super) fn check_gradients(
    node: &Node,
    outputs: &[Option<AnyTensor>],
    inputs: &[Option<AnyTensor>],
) -> Result<()> {
    if !is_observed() {
        return Ok(());
    }
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
    Err(STATE.with_borrow_mut(|state| state.find(node, found, outputs)))
}
