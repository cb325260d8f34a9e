//! Observers of ops that are recorded: there are none, unless a scope on this thread asked for it. Then
//! one test of a flag is all that it costs.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::any::{AnyTensor, Element, for_any};
use super::node::{NodeRef, Observers, Watching, set_observed};
use crate::array::{DType, Value};

thread_local! {
    static MADE: RefCell<Vec<Nodes>> = const { RefCell::new(Vec::new()) };
    static OBSERVER: Cell<Option<Observer>> = const { Cell::new(None) };
}

/// What is called with all that can be seen of a node.
pub(crate) type Observer = fn(Seen<'_>);

/// What is seen while ops are recorded.
pub(crate) enum Seen<'a> {
    /// An output of a node.
    Output(&'a NodeRef, u32, Range),
    /// An input that wants no gradient, of a node that comes next, under its number.
    Constant(u32, Range),
    /// An input to which a node has no edge, by its name.
    Beside(&'a NodeRef, String, Range),
}

/// Nodes by their address.
pub(crate) type Nodes = HashSet<*const ()>;

/// What sees outputs and constants.
static OUTPUTS: Observers =
    Observers { recorded: None, made: Some(made), constant: Some(constant) };

/// What counts nodes.
static COUNT: Observers = Observers { recorded: Some(count), made: None, constant: None };

/// An observer may be set with [`observe`] until this is dropped.
pub(crate) fn watch() -> Watching {
    Watching::start(&OUTPUTS)
}

fn count(node: &mut NodeRef) {
    MADE.with_borrow_mut(|made| {
        if let Some(nodes) = made.last_mut() {
            nodes.insert(node.address());
        }
    });
}

/// Runs a closure, and says which nodes were recorded by it on this thread. Some of them may be
/// gone already.
pub(crate) fn collect<R>(f: impl FnOnce() -> R) -> (R, Nodes) {
    struct Layer;
    impl Drop for Layer {
        fn drop(&mut self) {
            MADE.with_borrow_mut(Vec::pop);
        }
    }
    let _watching = Watching::start(&COUNT);
    MADE.with_borrow_mut(|made| made.push(Nodes::new()));
    let layer = Layer;
    let result = f();
    let nodes = MADE.with_borrow_mut(|made| made.last_mut().map(std::mem::take));
    drop(layer);
    (result, nodes.unwrap_or_default())
}

/// Counts nodes among those that the closure around has recorded.
pub(crate) fn adopt(nodes: &Nodes) {
    MADE.with_borrow_mut(|made| made.last_mut().map(|made| made.extend(nodes)));
}

/// Says who sees the outputs of nodes from now on; the one before comes back.
pub(crate) fn observe(observer: Option<Observer>) -> Option<Observer> {
    set_observed(observer.is_some());
    OBSERVER.replace(observer)
}

fn made(node: &NodeRef, slot: u32, _: (DType, &[usize]), value: Option<&dyn Any>) {
    // A range takes a pass over the value.
    if let Some(observer) = OBSERVER.get()
        && let Some(range) = value.and_then(Range::of)
    {
        observer(Seen::Output(node, slot, range));
    }
}

/// The number under which the range of an input without a gradient was shown; 0 if nobody sees it.
fn constant(value: &dyn Any) -> u32 {
    static NUMBERS: AtomicU32 = AtomicU32::new(1);
    let Some(observer) = OBSERVER.get() else { return 0 };
    let Some(range) = Range::of(value) else { return 0 };
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    observer(Seen::Constant(number, range));
    number
}

/// An input has no edge from this new node.
#[cold]
pub(crate) fn beside(node: &NodeRef, name: String, input: &AnyTensor) {
    if let Some(observer) = OBSERVER.get()
        && let Some(range) = for_any!(input, t => Range::of(&*t.read()))
    {
        observer(Seen::Beside(node, name, range));
    }
}

/// A summary of many numbers.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    shape: Vec<usize>,
    /// Of the finite ones; `None` if there are none.
    bounds: Option<(f64, f64)>,
    nan: usize,
    infinite: usize,
    /// Position of the first number that is not finite.
    first: usize,
}

impl Range {
    /// Of a `Value`; `None` where its elements are no floats.
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

    /// What is not finite: `2 NaN and 1 infinity, the first at [0, 1] of shape [2, 3]`.
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

/// Those of an element, by its position in row-major order.
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
