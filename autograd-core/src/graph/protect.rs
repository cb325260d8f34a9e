//! Inputs of layers that forward must not change: those that want a gradient. Forward runs with
//! recording off, so nothing would record a change in place, and later uses of the tensor would get
//! a wrong gradient. While forward runs, the thread lists these inputs, and each write checks the
//! list first. A write by another thread is found when forward ends, by the version.

use std::mem::replace;

use super::context::stacks;
use super::mode::GradMode;
use crate::error::{Error, Result};

pub(crate) trait Protector: Sync {
    fn layer(&self) -> &'static str;
    fn input(&self, position: usize) -> String;
}

pub(crate) struct Protected {
    pub(crate) tensor: *const (),
    /// The address of the data that it shares with other tensors; null if it shares none.
    data: *const (),
    layer: &'static dyn Protector,
    version: u32,
    /// The position of the layer's input that the tensor is, or is part of.
    pub(crate) position: u32,
}

#[inline]
pub(crate) fn protected() -> usize {
    stacks(|stacks| stacks.protected.borrow().len()).unwrap_or(0)
}

/// Protects a tensor of input `position` that wants a gradient, until the [`ForwardGuard`] is dropped.
#[inline]
pub(super) fn protect(
    tensor: *const (),
    (version, data): (u32, *const ()),
    layer: &'static dyn Protector,
    position: usize,
) {
    let position = position as u32;
    stacks(|stacks| {
        let input = Protected { tensor, data, layer, version, position };
        stacks.protected.borrow_mut().push(input);
    });
}

pub(crate) struct ForwardGuard {
    _mode: GradMode,
    /// The number of inputs that were protected before; `usize::MAX` once forward has ended.
    before: usize,
}

impl ForwardGuard {
    /// Starts forward. Its inputs are those that were protected after the first `before`.
    #[inline]
    pub(crate) fn new(before: usize) -> Self {
        Self { _mode: GradMode::layer(), before }
    }

    /// Ends forward: an error if one of its inputs was changed. `version` returns an input's current version.
    #[inline(always)]
    pub(crate) fn end(mut self, version: impl Fn(&Protected) -> u32) -> Result<()> {
        let before = replace(&mut self.before, usize::MAX);
        let changed = stacks(|stacks| {
            let mut protected = stacks.protected.borrow_mut();
            let own = protected.get(before..).unwrap_or(&[]);
            let changed = own.iter().find(|input| input.version != version(input));
            let changed = changed.map(|input| Box::new(input.changed()));
            protected.truncate(before);
            changed
        });
        changed.flatten().map_or(Ok(()), |changed| Err(*changed))
    }
}

impl Drop for ForwardGuard {
    #[inline]
    fn drop(&mut self) {
        if self.before != usize::MAX {
            stacks(|stacks| stacks.protected.borrow_mut().truncate(self.before));
        }
    }
}

/// Notes that this tensor now shares its data with others.
#[cold]
pub(super) fn shares(tensor: *const (), data: *const ()) {
    stacks(|stacks| {
        stacks.protected.borrow_mut().iter_mut().filter(|input| input.tensor == tensor).for_each(
            |input| {
                input.data = data;
            },
        );
    });
}

/// Returns an error if this data is that of a protected input. `write` names the op that would change it.
#[inline]
pub(super) fn check_write(address: *const (), data: *const (), write: &'static str) -> Result<()> {
    let is_same =
        |input: &&Protected| input.tensor == address || (!data.is_null() && input.data == data);
    let refused = stacks(|stacks| {
        stacks.protected.borrow().iter().rev().find(is_same).map(|input| input.refused(write))
    });
    refused.flatten().map_or(Ok(()), Err)
}

impl Protected {
    #[cold]
    fn refused(&self, write: &str) -> Error {
        self.error(|name| {
            format!(
                "forward must not change `{name}` in place ({write}): `{name}` wants a gradient \
                 (stop_gradient is false); change `{name}.copy()`, or declare `#[stop_gradient] {name}`"
            )
        })
    }

    #[cold]
    fn changed(&self) -> Error {
        self.error(|name| {
            format!(
                "`{name}` was changed in place by another thread while forward ran: `{name}` wants \
                 a gradient (stop_gradient is false), which would be wrong; change `{name}.copy()`, \
                 or declare `#[stop_gradient] {name}`"
            )
        })
    }

    fn error(&self, why: impl FnOnce(&str) -> String) -> Error {
        let name = self.layer.input(self.position as usize);
        Error::Unsupported { op: self.layer.layer(), why: why(&name) }
    }
}
