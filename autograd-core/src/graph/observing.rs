//! Guards and look-ups of the observers of this thread.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;

use super::context::{Events, mode, observes};
use super::node::{OBSERVERS, Observer, notify};

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
        // A thread that is ending observes nothing.
        let _ = OBSERVERS
            .try_with(|all| all.borrow_mut().push(Rc::clone(&observer) as Rc<dyn Observer>));
        update_events();
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
        let address = Rc::as_ptr(&self.observer).cast::<()>();
        // Dropped after the borrow of the list has ended: it may own values of user code.
        let _removed = OBSERVERS.try_with(|all| {
            let mut all = all.borrow_mut();
            let last = all.iter().rposition(|it| Rc::as_ptr(it).cast() == address);
            last.map(|last| all.remove(last))
        });
        update_events();
    }
}

/// Reads again what observers want to see. To be called when an observer's events have changed.
pub(crate) fn update_events() {
    let all = |all: &RefCell<Vec<Rc<dyn Observer>>>| {
        all.borrow().iter().fold(Events::NONE, |events, it| events.and(it.events()))
    };
    let events = OBSERVERS.try_with(all).unwrap_or(Events::NONE);
    mode(|mode| mode.events.set(events));
}

/// The innermost observer of a type.
pub(crate) fn observer<O: Observer>() -> Option<Rc<O>> {
    let find = |all: &RefCell<Vec<Rc<dyn Observer>>>| {
        let all = all.borrow();
        let found = all.iter().rev().find(|it| (&***it as &dyn Any).is::<O>())?;
        Rc::downcast(Rc::clone(found) as Rc<dyn Any>).ok()
    };
    OBSERVERS.try_with(find).ok().flatten()
}

/// Notes that user code reads numbers.
pub(crate) fn note_read(method: &'static str, place: &'static Location<'static>) {
    if observes(Events::READS) {
        notify(Events::READS, |observer| observer.read(method, place));
    }
}
