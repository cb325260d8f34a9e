//! What ops on this thread run in: the recording mode, the events that observers see, and the inputs that
//! running ops protect.

use std::cell::{Cell, RefCell};
use std::panic::Location;

/// A line of code: that of the call of an op, or of another event.
pub(crate) type Place = &'static Location<'static>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    On,
    NoGrad,
    /// In the forward of a custom op, whose call may be recorded.
    CustomOp,
    /// The library disabled it: in a backward, inside an op.
    Off,
}

/// Flags, which need no drop: an access is a single load.
pub(super) struct Mode {
    pub(super) recording: Cell<Recording>,
    /// Where the innermost [`NoGrad`](super::NoGrad) was created.
    pub(super) off_since: Cell<Option<Place>>,
    /// Where user code called the composite op that runs.
    pub(super) place: Cell<Option<Place>>,
    /// The name of the op that user code called there, if it is noted as its parts.
    pub(super) name: Cell<Option<&'static str>>,
    /// The events that some observer sees.
    pub(super) events: Cell<Events>,
    /// Whether recording was turned on since the innermost forward began.
    #[cfg(debug_assertions)]
    pub(super) was_turned_on: Cell<bool>,
}

thread_local! {
    static MODE: Mode = const {
        Mode {
            recording: Cell::new(Recording::On),
            off_since: Cell::new(None),
            place: Cell::new(None),
            name: Cell::new(None),
            events: Cell::new(Events::NONE),
            #[cfg(debug_assertions)]
            was_turned_on: Cell::new(false),
        }
    };
    /// A stack: the inputs of the innermost call are last.
    static PROTECTED: RefCell<Vec<Protected>> = const { RefCell::new(Vec::new()) };
}

#[inline(always)]
pub(super) fn mode<R>(f: impl FnOnce(&Mode) -> R) -> R {
    MODE.with(f)
}

/// An event, or a set of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Events(u8);

impl Events {
    pub(crate) const NONE: Self = Self(0);
    /// A node was recorded.
    pub(crate) const NODES: Self = Self(1);
    /// A value became the output of a node.
    pub(crate) const OUTPUTS: Self = Self(1 << 1);
    /// The values of outputs, of inputs that want no gradient, and of gradients.
    pub(crate) const VALUES: Self = Self(1 << 2);
    /// User code read numbers.
    pub(crate) const READS: Self = Self(1 << 3);
    /// An op that is not recorded read a tensor that wants a gradient.
    #[cfg(debug_assertions)]
    pub(crate) const UNRECORDED: Self = Self(1 << 4);
    /// An op of the table ran.
    pub(crate) const OPS: Self = Self(1 << 5);
    /// A custom op with `shapes(..)` is called.
    pub(crate) const SHAPES: Self = Self(1 << 6);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Whether an observer sees one of these events.
#[inline(always)]
pub(crate) fn observes(events: Events) -> bool {
    mode(|mode| mode.events.get().contains(events))
}

/// Whether this thread's ops are noted for a trace.
#[inline(always)]
pub(crate) fn is_noting() -> bool {
    cfg!(feature = "static-graph") && observes(Events::OPS)
}

pub(crate) trait Protector: Sync {
    fn op_name(&self) -> &'static str;
    fn input(&self, position: usize) -> String;
}

pub(crate) struct Protected {
    pub(crate) tensor: *const (),
    /// The address of the data that it shares with other tensors; null if it shares none.
    pub(super) data: *const (),
    pub(super) protector: &'static dyn Protector,
    pub(super) version: u32,
    /// The position of the op's input that the tensor is, or is part of.
    pub(crate) position: u32,
}

/// Runs `f` on the protected inputs; `None` if the thread is ending.
#[inline(always)]
pub(super) fn protected_inputs<R>(f: impl FnOnce(&mut Vec<Protected>) -> R) -> Option<R> {
    PROTECTED.try_with(|protected| f(&mut protected.borrow_mut())).ok()
}
