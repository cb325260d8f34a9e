//! Whether this thread's ops are noted for a trace.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Off,
    Noting,
    Inside,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Off) };
}

/// The payload of a panic that ends a traced closure; the trace reports it.
pub(crate) struct Refused(pub(crate) String);

/// Sets the state until dropped, also by unwinding.
pub(super) struct Within(State);

impl Within {
    pub(super) fn state(state: State) -> Self {
        Self(STATE.replace(state))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

#[inline(always)]
pub(crate) fn is_noting() -> bool {
    cfg!(feature = "static-graph") && matches!(STATE.get(), State::Noting)
}
