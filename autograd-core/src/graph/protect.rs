//! Inputs of custom ops that forward must not change: those that want a gradient. Forward runs with
//! recording off, so nothing would record a change in place, and later uses of the tensor would get
//! a wrong gradient. While forward runs, the thread lists these inputs, and each write checks the
//! list first. A write by another thread is found when forward ends, by the version.

use std::mem::take;

use super::context::{Protected, protected_inputs};
use super::mode::GradMode;
use crate::error::{Error, Result};

/// Protects the inputs that `protect` lists; returns their number, for the [`ForwardGuard`] that ends it.
#[inline(always)]
pub(crate) fn protect_inputs(protect: impl Fn(&mut Vec<Protected>) -> usize) -> usize {
    // A thread that is ending protects nothing.
    protected_inputs(&protect).unwrap_or_else(|| protect(&mut Vec::new()))
}

pub(crate) struct ForwardGuard {
    _mode: GradMode,
    /// The number of its inputs that are protected, which are the last of the list.
    inputs: usize,
}

impl ForwardGuard {
    /// Starts a forward, whose inputs are the last `inputs` ones that were protected.
    #[inline]
    pub(crate) fn new(inputs: usize) -> Self {
        Self { _mode: GradMode::custom_op(), inputs }
    }

    /// Ends forward: an error if one of its inputs was changed. `version` returns an input's current version.
    #[inline(always)]
    pub(crate) fn end(mut self, version: impl Fn(&Protected) -> u32) -> Result<()> {
        let inputs = take(&mut self.inputs);
        let changed = protected_inputs(|protected| {
            let first = protected.len().saturating_sub(inputs);
            let changed = protected[first..].iter().find(|input| input.version != version(input));
            let changed = changed.map(|input| Box::new(input.changed()));
            protected.truncate(first);
            changed
        });
        changed.flatten().map_or(Ok(()), |changed| Err(*changed))
    }
}

impl Drop for ForwardGuard {
    #[inline]
    fn drop(&mut self) {
        if self.inputs > 0 {
            protected_inputs(|protected| {
                protected.truncate(protected.len().saturating_sub(self.inputs));
            });
        }
    }
}

/// Notes that this tensor now shares its data with others.
#[cold]
pub(super) fn shares(tensor: *const (), data: *const ()) {
    protected_inputs(|protected| {
        protected.iter_mut().filter(|input| input.tensor == tensor).for_each(|input| {
            input.data = data;
        });
    });
}

/// Returns an error if this data is that of a protected input. `write` names the op that would change it.
#[inline]
pub(super) fn check_write(address: *const (), data: *const (), write: &'static str) -> Result<()> {
    let is_same =
        |input: &&Protected| input.tensor == address || (!data.is_null() && input.data == data);
    let refused = protected_inputs(|protected| {
        protected.iter().rev().find(is_same).map(|input| input.refused(write))
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
        let name = self.protector.input(self.position as usize);
        Error::Unsupported { op: self.protector.op_name(), why: why(&name) }
    }
}
