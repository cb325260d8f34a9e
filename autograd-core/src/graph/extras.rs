//! What most nodes never have: hooks, notes of outputs that were changed, and a name that nobody else
//! gets when they are gone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::any::AnyTensor;
use super::hooks::{Hook, HookId, HookList};
use super::node::Node;
use crate::error::HookResult;

/// What most nodes never have.
#[derive(Default)]
pub(super) struct Extras {
    hooks: HookList<NodeAction>,
    /// Outputs that were changed in place, each with its version since.
    changed: Mutex<Vec<(u32, u32)>>,
}

/// What to do when a node is visited.
pub(crate) type NodeHook = Hook<NodeAction>;

#[derive(Clone)]
pub(crate) enum NodeAction {
    /// Show the gradient of an output, and take another in its place.
    Output(u32, Arc<dyn Fn(&AnyTensor) -> HookResult<Option<AnyTensor>> + Send + Sync>),
    /// Keep the gradient of an output with that output, if it is still alive.
    Retain(u32, Arc<dyn Fn() -> Option<AnyTensor> + Send + Sync>),
    /// Show the gradients of all outputs, and take others in their place.
    Before(Arc<dyn Fn(&[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync>),
    /// Show the gradients of the inputs and of the outputs, and take others for the inputs.
    After(Arc<AfterHook>),
}

/// From the gradients of a node's inputs and outputs.
pub(crate) type AfterHook =
    dyn Fn(&[Option<AnyTensor>], &[Option<AnyTensor>]) -> HookResult<NewGrads> + Send + Sync;

/// Gradients in place of others, if any.
type NewGrads = Option<Vec<Option<AnyTensor>>>;

impl Node {
    /// Stands for the node, also when that is gone and its memory is another one's.
    pub(crate) fn token(&self) -> Token {
        Token(Arc::downgrade(self.made_extras()))
    }

    /// The [`Token::key`] of its token; `None` if it has none.
    pub(crate) fn key(&self) -> Option<Key> {
        self.extras.get().map(|extras| Arc::as_ptr(extras).cast())
    }

    fn made_extras(&self) -> &Arc<Extras> {
        self.extras.get_or_init(Arc::default)
    }

    /// Its hooks; `None` if there never was one.
    #[inline]
    pub(crate) fn hooks(&self) -> Option<&HookList<NodeAction>> {
        self.extras.get().map(|extras| &extras.hooks)
    }

    /// The same, where one is to be added.
    pub(crate) fn made_hooks(&self) -> &HookList<NodeAction> {
        &self.made_extras().hooks
    }

    /// How often an output was changed in place since it left the op.
    pub(crate) fn output_version(&self, slot: u32) -> u32 {
        let Some(extras) = self.extras.get() else { return 0 };
        let changed = extras.changed();
        changed.iter().find(|(changed, _)| *changed == slot).map_or(0, |&(_, version)| version)
    }
}

impl Extras {
    fn changed(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a node from all others, those before and after it in the same memory too, as long as its token
/// is kept.
pub(crate) type Key = *const ();

/// A node, of which this keeps nothing alive.
pub(crate) struct Token(Weak<Extras>);

impl Token {
    pub(crate) fn key(&self) -> Key {
        self.0.as_ptr().cast()
    }

    /// Whether there was such a hook.
    pub(crate) fn remove_hook(&self, id: HookId) -> bool {
        self.0.upgrade().is_some_and(|extras| extras.hooks.remove(id))
    }

    /// Notes that an output was changed in place. The node cannot ask its output: it does not hold
    /// it.
    pub(super) fn output_changed(&self, slot: u32, version: u32) {
        let Some(extras) = self.0.upgrade() else { return };
        let mut changed = extras.changed();
        match changed.iter_mut().find(|(changed, _)| *changed == slot) {
            Some((_, known)) => *known = version.max(*known),
            None => changed.push((slot, version)),
        }
    }
}
