//! Inputs of layers that forward must not change: those that want a gradient.
//!
//! Forward runs with recording off, so a change in place there would be noticed by nobody, and later
//! uses of the tensor would get a wrong gradient. While forward runs, these inputs are noted by the
//! thread, and each write looks there first. A write by another thread is found afterwards, by the
//! version.

use std::cell::{Cell, RefCell};
use std::ptr::null;

use super::any::Element;
use super::mode::GradMode;
use super::small::SmallOp;
use super::tensor::Tensor;
use crate::error::{Error, Result};

/// An input that wants a gradient, of a layer whose forward runs.
#[derive(Clone, Copy)]
pub(crate) struct Protected {
    /// Where the tensor is, compared only.
    pub(crate) tensor: *const (),
    /// Where the data is that it shares with other tensors; null if it shares none.
    data: *const (),
    /// `None` where nothing is noted.
    layer: Option<&'static &'static dyn SmallOp>,
    version: u32,
    /// Of the layer's input that it is, or is part of.
    pub(crate) position: u32,
}

/// A [`Protected`] whose fields are written one by one: what is built beside its place and copied there in
/// wider pieces keeps the processor waiting.
struct Place {
    tensor: Cell<*const ()>,
    data: Cell<*const ()>,
    layer: Cell<Option<&'static &'static dyn SmallOp>>,
    version: Cell<u32>,
    position: Cell<u32>,
}

impl Place {
    const fn empty() -> Self {
        Self {
            tensor: Cell::new(null()),
            data: Cell::new(null()),
            layer: Cell::new(None),
            version: Cell::new(0),
            position: Cell::new(0),
        }
    }

    #[inline(always)]
    fn get(&self) -> Protected {
        Protected {
            tensor: self.tensor.get(),
            data: self.data.get(),
            layer: self.layer.get(),
            version: self.version.get(),
            position: self.position.get(),
        }
    }

    #[inline(always)]
    fn set(&self, input: Protected) {
        self.tensor.set(input.tensor);
        self.data.set(input.data);
        self.layer.set(input.layer);
        self.version.set(input.version);
        self.position.set(input.position);
    }
}

/// Calls of few inputs, and calls in calls, need no more.
const INLINE_INPUTS: usize = 16;

// A stack, the inputs of the innermost call last. It is pushed and popped in every small call: what needs
// no drop is reached the quickest.
thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static INLINE: [Place; INLINE_INPUTS] = const { [const { Place::empty() }; INLINE_INPUTS] };
    /// Those after them; what stands beyond the count is left over.
    static MORE: RefCell<Vec<Protected>> = const { RefCell::new(Vec::new()) };
}

#[inline(always)]
fn get(at: usize) -> Protected {
    INLINE.with(|inline| match inline.get(at) {
        Some(place) => place.get(),
        None => more(|more| more.get(at - INLINE_INPUTS).copied())
            .unwrap_or_else(|| Place::empty().get()),
    })
}

#[inline(always)]
fn set(at: usize, input: Protected) {
    INLINE.with(|inline| match inline.get(at) {
        Some(place) => place.set(input),
        None => set_more(at - INLINE_INPUTS, input),
    });
}

#[cold]
fn set_more(at: usize, input: Protected) {
    more(|more| {
        match more.get_mut(at) {
            Some(place) => *place = input,
            None => more.push(input),
        }
        None
    });
}

/// A thread that is ending has none any more.
#[cold]
fn more(f: impl FnOnce(&mut Vec<Protected>) -> Option<Protected>) -> Option<Protected> {
    MORE.try_with(|more| f(&mut more.borrow_mut())).ok().flatten()
}

/// How many inputs are protected.
#[inline]
pub(crate) fn protected() -> usize {
    COUNT.get()
}

/// Protects a tensor, or a part, of input `position`, if it wants a gradient; until the [`Running`] forward ends.
#[inline]
pub(super) fn protect<T: Element>(
    tensor: &Tensor<T>,
    layer: &'static &'static dyn SmallOp,
    position: usize,
) {
    if tensor.stop_gradient() {
        return;
    }
    let at = COUNT.get();
    let (version, data) = tensor.shared_state();
    let (tensor, position) = (tensor.address(), position as u32);
    set(at, Protected { tensor, data, layer: Some(layer), version, position });
    COUNT.set(at + 1);
}

/// The forward of a layer runs: recording is off, and inputs are protected.
pub(crate) struct Running {
    _mode: GradMode,
    /// How many inputs were protected before.
    before: usize,
}

impl Running {
    /// With the inputs that were protected since there were so many.
    #[inline]
    pub(crate) fn new(before: usize) -> Self {
        Self { _mode: GradMode::layer(), before }
    }

    /// An error if one of its inputs was changed since; `version` tells which version it has now.
    #[inline(always)]
    pub(crate) fn check(&self, version: impl Fn(&Protected) -> u32) -> Result<(), Box<Error>> {
        for at in self.before..COUNT.get() {
            let input = get(at);
            if input.version != version(&input) {
                return Err(Box::new(input.changed()));
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        COUNT.set(self.before);
    }
}

/// This tensor now shares its data with others.
#[cold]
pub(super) fn shares(tensor: *const (), data: *const ()) {
    for at in 0..COUNT.get() {
        let input = get(at);
        if input.tensor == tensor {
            set(at, Protected { data, ..input });
        }
    }
}

/// An error if the data of this tensor is that of a protected input; `write` would change it.
#[inline]
pub(super) fn check_write<T: Element>(tensor: &Tensor<T>, write: &'static str) -> Result<()> {
    match COUNT.get() {
        0 => Ok(()),
        count => search(count, tensor.address(), tensor.shared_state().1, write),
    }
}

fn search(count: usize, tensor: *const (), data: *const (), write: &'static str) -> Result<()> {
    let is_same =
        |input: &Protected| input.tensor == tensor || (!data.is_null() && input.data == data);
    match (0..count).rev().map(get).find(is_same) {
        Some(input) => Err(input.refused(write)),
        None => Ok(()),
    }
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
        let Some(layer) = self.layer else { unreachable!("it was protected by a layer") };
        let name = layer.input_name(self.position as usize);
        Error::Unsupported { op: layer.name(), why: why(&name) }
    }
}
