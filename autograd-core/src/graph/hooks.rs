//! Lists of hooks, which user code may change while a backward runs them.

use std::iter::from_fn;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Identifies a hook in the process. Ids increase in the order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HookId(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl HookId {
    /// The id of the next hook. A backward runs only hooks registered before it: those with smaller ids.
    pub(crate) fn next_id() -> Self {
        Self(NEXT.load(Ordering::Relaxed))
    }
}

#[derive(Clone)]
pub(crate) struct Hook<A> {
    id: HookId,
    pub(crate) location: &'static Location<'static>,
    pub(crate) action: A,
}

pub(crate) struct HookList<A>(Mutex<Vec<Hook<A>>>);

impl<A> Default for HookList<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<A: Clone> HookList<A> {
    pub(crate) fn add(&self, action: A, location: &'static Location<'static>) -> HookId {
        push(&mut self.lock(), action, location)
    }

    /// As [`add`](Self::add), unless the list has a hook whose action satisfies `is`.
    pub(crate) fn add_once(
        &self,
        action: A,
        location: &'static Location<'static>,
        is: impl Fn(&A) -> bool,
    ) {
        let mut hooks = self.lock();
        if !hooks.iter().any(|hook| is(&hook.action)) {
            push(&mut hooks, action, location);
        }
    }

    pub(crate) fn remove(&self, id: HookId) -> bool {
        let mut hooks = self.lock();
        let Ok(place) = hooks.binary_search_by_key(&id, |hook| hook.id) else { return false };
        let removed = hooks.remove(place);
        // Its drop may run user code, which may use this list.
        drop(hooks);
        drop(removed);
        true
    }

    pub(crate) fn any(&self, is: impl Fn(&A) -> bool) -> bool {
        self.lock().iter().any(|hook| is(&hook.action))
    }

    /// The hooks with ids below `until`. Hooks that are removed during the iteration are skipped.
    pub(crate) fn before(&self, until: HookId) -> impl Iterator<Item = Hook<A>> {
        let mut last = HookId(0);
        from_fn(move || {
            let hooks = self.lock();
            let next = hooks.partition_point(|hook| hook.id <= last);
            let hook = hooks.get(next).filter(|hook| hook.id < until)?;
            last = hook.id;
            Some(hook.clone())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Hook<A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller holds the list's lock, so the list is sorted by id.
fn push<A>(hooks: &mut Vec<Hook<A>>, action: A, location: &'static Location<'static>) -> HookId {
    let id = HookId(NEXT.fetch_add(1, Ordering::Relaxed));
    hooks.push(Hook { id, location, action });
    id
}
