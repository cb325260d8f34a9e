//! Whether this thread notes its ops for a trace.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Off,
    Noting,
    /// Inside an op.
    Inside,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Off) };
}

/// What ends a closure that is traced, as the payload of a panic which the trace reports.
pub(crate) struct Refused(pub(crate) String);

/// Sets the state until dropped, also by a panic.
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

/// Whether an op that starts now is to be noted.
#[inline(always)]
pub(crate) fn is_noting() -> bool {
    cfg!(feature = "static-graph") && matches!(STATE.get(), State::Noting)
}
