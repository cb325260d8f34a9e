//! What ops on this thread run in: the recording mode, the inputs that running ops protect, and a stack of
//! observers. Without an observer each event costs one test of a flag.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

use super::any::AnyTensor;
use super::mode::Recording;
use super::node::NodeRef;
use super::protect::Protected;
use crate::array::DType;

type Place = &'static Location<'static>;

/// Flags, which need no drop: an access is a single load.
pub(super) struct Mode {
    pub(super) recording: Cell<Recording>,
    /// Where the innermost [`NoGrad`](super::NoGrad) was created.
    pub(super) off_since: Cell<Option<Place>>,
    /// Where user code called the composite op that runs.
    pub(super) place: Cell<Option<Place>>,
    /// The events that some observer sees.
    events: Cell<u8>,
}

pub(super) struct Stacks {
    /// The inputs of the innermost call are last.
    pub(super) protected: RefCell<Vec<Protected>>,
    observers: RefCell<Vec<Rc<dyn Observer>>>,
}

thread_local! {
    static MODE: Mode = const {
        Mode {
            recording: Cell::new(Recording::On),
            off_since: Cell::new(None),
            place: Cell::new(None),
            events: Cell::new(0),
        }
    };
    static STACKS: Stacks = const {
        Stacks { protected: RefCell::new(Vec::new()), observers: RefCell::new(Vec::new()) }
    };
}

#[inline(always)]
pub(super) fn mode<R>(f: impl FnOnce(&Mode) -> R) -> R {
    MODE.with(f)
}

/// Runs `f` on this thread's stacks; `None` if the thread is ending.
#[inline(always)]
pub(super) fn stacks<R>(f: impl FnOnce(&Stacks) -> R) -> Option<R> {
    STACKS.try_with(f).ok()
}

/// An event, or a set of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Events(u8);

impl Events {
    /// A node was recorded.
    pub(crate) const NODES: Self = Self(1);
    /// A value became the output of a node.
    pub(crate) const OUTPUTS: Self = Self(1 << 1);
    /// The values of outputs, of inputs that want no gradient, and of gradients.
    pub(crate) const VALUES: Self = Self(1 << 2);
    /// User code read numbers.
    pub(crate) const READS: Self = Self(1 << 3);
    /// An op that is not recorded read a tensor that wants a gradient.
    pub(crate) const UNRECORDED: Self = Self(1 << 4);
    /// An op of the table ran.
    pub(crate) const OPS: Self = Self(1 << 5);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Sees what happens on a thread while its [`Observing`] lives. Of several observers of one type, only the
/// innermost does.
pub(crate) trait Observer: Any {
    /// The events that it sees now.
    fn events(&self) -> Events;
    /// [`Events::NODES`].
    fn recorded(&self, _node: &mut NodeRef) {}
    /// [`Events::OUTPUTS`]: a value became output `slot` of a node; without the value if others share it.
    fn output(
        &self,
        _node: &NodeRef,
        _slot: u32,
        _form: (DType, &[usize]),
        _value: Option<&dyn Any>,
    ) {
    }
    /// [`Events::VALUES`]: an input of the next node that wants no gradient; returns a number for its edge.
    fn constant(&self, _value: &dyn Any) -> u32 {
        0
    }
    /// [`Events::VALUES`]: an input, with its name, to which a new node has no edge.
    fn untracked(&self, _node: &NodeRef, _name: String, _input: &AnyTensor) {}
    /// [`Events::READS`]: the method that read numbers.
    fn read(&self, _method: &'static str, _place: Place) {}
    /// [`Events::UNRECORDED`]: the tensor, by address and shape, and the op.
    fn unrecorded(&self, _input: (*const (), &[usize]), _op: &'static str, _place: Place) {}
}

/// A guard: its observer sees this thread's events until it is dropped, also by unwinding.
pub(crate) struct Observing<O: Observer> {
    observer: Rc<O>,
    _not_send: PhantomData<*const ()>,
}

impl<O: Observer> Observing<O> {
    pub(crate) fn start(observer: O) -> Self {
        Self::share(Rc::new(observer))
    }

    /// Starts one more scope of an observer.
    pub(crate) fn share(observer: Rc<O>) -> Self {
        stacks(|stacks| {
            stacks.observers.borrow_mut().push(Rc::clone(&observer) as Rc<dyn Observer>);
            stacks.update_events();
        });
        Self { observer, _not_send: PhantomData }
    }
}

impl<O: Observer> std::ops::Deref for Observing<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.observer
    }
}

impl<O: Observer> Drop for Observing<O> {
    fn drop(&mut self) {
        // Dropped after the borrow of the list has ended: it may own values of user code.
        let _removed = stacks(|stacks| {
            let mut observers = stacks.observers.borrow_mut();
            let address = Rc::as_ptr(&self.observer).cast::<()>();
            let last = observers.iter().rposition(|it| Rc::as_ptr(it).cast() == address);
            let removed = last.map(|last| observers.remove(last));
            drop(observers);
            stacks.update_events();
            removed
        });
    }
}

impl Stacks {
    fn update_events(&self) {
        let observers = self.observers.borrow();
        let events = observers.iter().fold(0, |all, observer| all | observer.events().0);
        mode(|mode| mode.events.set(events));
    }
}

/// Reads again what observers want to see. To be called when an observer's events have changed.
pub(crate) fn update_events() {
    stacks(Stacks::update_events);
}

/// Whether an observer sees one of these events.
#[inline(always)]
pub(crate) fn observes(events: Events) -> bool {
    mode(|mode| Events(mode.events.get()).contains(events))
}

/// The innermost observer of a type.
pub(crate) fn observer<O: Observer>() -> Option<Rc<O>> {
    stacks(|stacks| {
        let observers = stacks.observers.borrow();
        let found = observers.iter().rev().find(|it| (&***it as &dyn Any).is::<O>());
        found.and_then(|found| Rc::downcast(Rc::clone(found) as Rc<dyn Any>).ok())
    })
    .flatten()
}

/// Passes an event to the innermost observer of each type that sees it.
#[cold]
pub(crate) fn notify(event: Events, mut call: impl FnMut(&dyn Observer)) {
    let observers = stacks(|stacks| stacks.observers.borrow().clone()).unwrap_or_default();
    let mut seen: Vec<TypeId> = Vec::new();
    for observer in observers.iter().rev() {
        let kind = (&**observer as &dyn Any).type_id();
        if !seen.contains(&kind) {
            seen.push(kind);
            if observer.events().contains(event) {
                call(&**observer);
            }
        }
    }
}

/// Notes that user code reads numbers.
pub(crate) fn note_read(method: &'static str, place: Place) {
    if observes(Events::READS) {
        notify(Events::READS, |observer| observer.read(method, place));
    }
}
