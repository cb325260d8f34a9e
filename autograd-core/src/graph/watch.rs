//! Observers of recording, active in scopes of this thread; without a scope they cost one test of a flag.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::any::{AnyTensor, Element, for_any};
use super::node::{NodeRef, Observers, Observing, set_observes_values};
use crate::array::{DType, Value};

thread_local! {
    static RECORDED: RefCell<Vec<Nodes>> = const { RefCell::new(Vec::new()) };
    static OBSERVER: Cell<Option<Observer>> = const { Cell::new(None) };
}

pub(crate) type Observer = fn(Event<'_>);

pub(crate) enum Event<'a> {
    Output(&'a NodeRef, u32, Range),
    /// An input of the next node that wants no gradient, with its number.
    Constant(u32, Range),
    /// An input to which a node has no edge, with its name.
    Untracked(&'a NodeRef, String, Range),
}

pub(crate) type Nodes = HashSet<*const ()>;

static OUTPUTS: Observers =
    Observers { recorded: None, output: Some(observe_output), constant: Some(observe_constant) };

static NODES: Observers = Observers { recorded: Some(add_node), output: None, constant: None };

pub(crate) fn watch() -> Observing {
    Observing::start(&OUTPUTS)
}

fn add_node(node: &mut NodeRef) {
    RECORDED.with_borrow_mut(|recorded| {
        if let Some(nodes) = recorded.last_mut() {
            nodes.insert(node.address());
        }
    });
}

/// Runs a closure; returns the nodes that it recorded on this thread. Some may be dropped already.
pub(crate) fn collect<R>(f: impl FnOnce() -> R) -> (R, Nodes) {
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            RECORDED.with_borrow_mut(Vec::pop);
        }
    }
    let _watching = Observing::start(&NODES);
    RECORDED.with_borrow_mut(|recorded| recorded.push(Nodes::new()));
    let scope = Scope;
    let result = f();
    let nodes = RECORDED.with_borrow_mut(|recorded| recorded.last_mut().map(std::mem::take));
    drop(scope);
    (result, nodes.unwrap_or_default())
}

pub(crate) fn adopt(nodes: &Nodes) {
    RECORDED.with_borrow_mut(|recorded| recorded.last_mut().map(|recorded| recorded.extend(nodes)));
}

pub(crate) fn observe(observer: Option<Observer>) -> Option<Observer> {
    set_observes_values(observer.is_some());
    OBSERVER.replace(observer)
}

fn observe_output(node: &NodeRef, slot: u32, _: (DType, &[usize]), value: Option<&dyn Any>) {
    // Computing a range takes a pass over the value.
    if let Some(observer) = OBSERVER.get()
        && let Some(range) = value.and_then(Range::of)
    {
        observer(Event::Output(node, slot, range));
    }
}

fn observe_constant(value: &dyn Any) -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let Some(observer) = OBSERVER.get() else { return 0 };
    let Some(range) = Range::of(value) else { return 0 };
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    observer(Event::Constant(number, range));
    number
}

#[cold]
pub(crate) fn report_untracked(node: &NodeRef, name: String, input: &AnyTensor) {
    if let Some(observer) = OBSERVER.get()
        && let Some(range) = for_any!(input, t => Range::of(&*t.read()))
    {
        observer(Event::Untracked(node, name, range));
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Range {
    shape: Vec<usize>,
    /// The least and the greatest finite number; `None` if there is none.
    bounds: Option<(f64, f64)>,
    nan: usize,
    infinite: usize,
    /// Position of the first number that is not finite.
    first: usize,
}

impl Range {
    /// The range of a `Value`; `None` if its elements are not floats.
    pub(crate) fn of(value: &dyn Any) -> Option<Self> {
        match (value.downcast_ref::<Value<f32>>(), value.downcast_ref::<Value<f64>>()) {
            (Some(value), _) => Some(Self::over(value, f64::from)),
            (_, Some(value)) => Some(Self::over(value, |x| x)),
            _ => None,
        }
    }

    fn over<T: Element>(value: &Value<T>, number: impl Fn(T) -> f64) -> Self {
        let shape = value.shape().to_vec();
        let mut range = Self { shape, bounds: None, nan: 0, infinite: 0, first: usize::MAX };
        let value = value.contiguous();
        for (i, &x) in value.as_slice().unwrap_or(&[]).iter().enumerate() {
            let x = number(x);
            if x.is_finite() {
                let (low, high) = range.bounds.unwrap_or((x, x));
                range.bounds = Some((low.min(x), high.max(x)));
                continue;
            }
            range.first = range.first.min(i);
            if x.is_nan() {
                range.nan += 1;
            } else {
                range.infinite += 1;
            }
        }
        range
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.nan == 0 && self.infinite == 0
    }

    /// Describes what is not finite: `2 NaN and 1 infinity, the first at [0, 1] of shape [2, 3]`.
    pub(crate) fn broken(&self) -> String {
        let infinities = if self.infinite == 1 { "infinity" } else { "infinities" };
        let what = match (self.nan, self.infinite) {
            (nan, 0) => format!("{nan} NaN"),
            (0, infinite) => format!("{infinite} {infinities}"),
            (nan, infinite) => format!("{nan} NaN and {infinite} {infinities}"),
        };
        let at = indices(&self.shape, self.first);
        format!("{what}, the first at {at:?} of shape {:?}", self.shape)
    }
}

pub(crate) fn indices(shape: &[usize], mut position: usize) -> Vec<usize> {
    let mut indices = vec![0; shape.len()];
    for (index, n) in indices.iter_mut().zip(shape).rev() {
        *index = position % n;
        position /= n;
    }
    indices
}

/// `shape [2, 3], from -1 to 4.5, 2 NaN`.
impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "shape {:?}", self.shape)?;
        // Six digits are enough to see what is wrong.
        let short = |x: f64| format!("{x:.6e}").parse().unwrap_or(x);
        match self.bounds {
            Some((low, high)) if low == high => {
                let all =
                    if self.shape.iter().product::<usize>() == 1 { "" } else { " everywhere" };
                write!(f, ", {:?}{all}", short(low))?;
            }
            Some((low, high)) => write!(f, ", from {:?} to {:?}", short(low), short(high))?,
            None if self.is_finite() => f.write_str(", empty")?,
            None => {}
        }
        if self.nan > 0 {
            write!(f, ", {} NaN", self.nan)?;
        }
        if self.infinite > 0 {
            write!(f, ", {} infinite", self.infinite)?;
        }
        Ok(())
    }
}
