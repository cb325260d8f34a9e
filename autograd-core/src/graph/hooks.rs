//! Lists of hooks, which user code may change while a backward runs them.

use std::iter::from_fn;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names a hook among all hooks of the process. A later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HookId(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl HookId {
    /// That of the next hook. A backward runs the hooks before it: those that were registered before the
    /// backward began.
    pub(crate) fn coming() -> Self {
        Self(NEXT.load(Ordering::Relaxed))
    }
}

#[derive(Clone)]
pub(crate) struct Hook<A> {
    id: HookId,
    /// Where it was registered.
    pub(crate) location: &'static Location<'static>,
    pub(crate) action: A,
}

/// Hooks in the order of their registration.
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

    /// The same where no hook is there that `is` holds for.
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

    /// Whether it was there.
    pub(crate) fn remove(&self, id: HookId) -> bool {
        let mut hooks = self.lock();
        let Ok(place) = hooks.binary_search_by_key(&id, |hook| hook.id) else { return false };
        let removed = hooks.remove(place);
        // User code runs where it is dropped, and may come back here.
        drop(hooks);
        drop(removed);
        true
    }

    pub(crate) fn any(&self, is: impl Fn(&A) -> bool) -> bool {
        self.lock().iter().any(|hook| is(&hook.action))
    }

    /// The hooks before `until`, each as the list is when it is asked for: one that was removed by an
    /// earlier one does not come.
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

/// Under the lock of the list, which so is in the order of its ids.
fn push<A>(hooks: &mut Vec<Hook<A>>, action: A, location: &'static Location<'static>) -> HookId {
    let id = HookId(NEXT.fetch_add(1, Ordering::Relaxed));
    hooks.push(Hook { id, location, action });
    id
}
