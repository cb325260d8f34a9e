//! Where tensors outside the graph lost it: the lines that `explain` tells.
//!
//! A tensor keeps one number, the name of a set of causes. An op that is not recorded hands on
//! those of its inputs. Sets stand in a table that grows with the lines of a program, not with
//! what runs there, and holds no tensor.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::any::Element;
use super::mode::{self, Recording, is_grad_enabled};
use super::tensor::Tensor;
use crate::array::Value;

type Place = &'static Location<'static>;

/// Why a tensor that was computed from one that wants a gradient is outside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    Detached(Place),
    /// `set_stop_gradient(true)`.
    Cut(Place),
    /// An op under `no_grad`, and where that scope was opened.
    NoGrad {
        op: &'static str,
        at: Place,
        scope: Place,
    },
    /// An op without a derivative, or an output that has none.
    NoDerivative {
        op: &'static str,
        at: Place,
    },
    /// A gradient of a backward that was not recorded.
    Gradient,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detached(place) => write!(f, "`detach()`ed at {place}"),
            Self::Cut(place) => write!(f, "cut off by `set_stop_gradient(true)` at {place}"),
            Self::NoGrad { op, at, scope } => {
                write!(f, "computed by {op} at {at} under the `no_grad` at {scope}")
            }
            Self::NoDerivative { op, at } => {
                write!(f, "computed by {op} at {at}, which has no derivative")
            }
            Self::Gradient => f.write_str("computed by a backward without `create_graph`"),
        }
    }
}

/// Names a set of causes; the empty one where nothing was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost(u32);

/// So many causes are told of a tensor at most, and so many sets are kept.
const TOLD: usize = 8;
const SETS: usize = 1 << 20;

#[derive(Default)]
struct Table {
    /// Set `i` has the name `i + 1`.
    sets: Vec<Vec<Cause>>,
    names: HashMap<Vec<Cause>, u32>,
}

static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();

fn with_table<R>(f: impl FnOnce(&mut Table) -> R) -> R {
    let table = TABLE.get_or_init(Mutex::default);
    f(&mut table.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Table {
    fn name(&mut self, set: Vec<Cause>) -> Option<Lost> {
        if let Some(&name) = self.names.get(&set) {
            return Some(Lost(name));
        }
        if self.sets.len() == SETS {
            return None;
        }
        self.sets.push(set.clone());
        let name = self.sets.len() as u32;
        self.names.insert(set, name);
        Some(Lost(name))
    }

    fn set(&self, Lost(name): Lost) -> &[Cause] {
        (name as usize).checked_sub(1).map_or(&[], |at| &self.sets[at])
    }
}

/// What a set was made of, for a quick answer to the same question.
#[derive(Clone, Copy)]
struct Known {
    key: [usize; 3],
    lost: Lost,
}

const KNOWN: usize = 64;

thread_local! {
    /// By a hash of the key; a newer one takes the place of an older.
    static ANSWERS: RefCell<[Known; KNOWN]> =
        const { RefCell::new([Known { key: [0; 3], lost: Lost::NONE }; KNOWN]) };
}

/// The answer to a key other than zeros, remembered by this thread.
fn remembered(key: [usize; 3], find: impl FnOnce() -> Lost) -> Lost {
    let mixed = key.iter().fold(0_u64, |hash, &part| {
        (hash ^ part as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26)
    });
    let at = mixed as usize % KNOWN;
    let known = ANSWERS.with_borrow(|answers| answers[at]);
    if known.key == key {
        return known.lost;
    }
    let lost = find();
    ANSWERS.with_borrow_mut(|answers| answers[at] = Known { key, lost });
    lost
}

impl Lost {
    pub(crate) const NONE: Self = Self(0);

    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    #[cold]
    pub(crate) fn by(cause: Cause) -> Self {
        with_table(|table| table.name(vec![cause])).unwrap_or(Self::NONE)
    }

    /// For these reasons and for those of the other.
    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        if other == Self::NONE || other == self {
            self
        } else if self == Self::NONE {
            other
        } else {
            self.joined(other)
        }
    }

    #[cold]
    fn joined(self, other: Self) -> Self {
        let key = [self.0 as usize, other.0 as usize, usize::MAX];
        remembered(key, || {
            with_table(|table| {
                let mut set = table.set(self).to_vec();
                let new = table.set(other).iter().filter(|cause| !set.contains(cause));
                let new: Vec<Cause> = new.copied().collect();
                set.extend(new);
                set.truncate(TOLD);
                table.name(set)
            })
            .unwrap_or(self)
        })
    }

    /// Of a gradient that was computed now.
    pub(crate) fn of_gradient() -> Self {
        if is_grad_enabled() {
            return Self::NONE;
        }
        remembered([1, 0, 0], || Self::by(Cause::Gradient))
    }

    /// Why it was lost, in the order in which that happened.
    pub(crate) fn causes(self) -> Vec<Cause> {
        if self == Self::NONE { Vec::new() } else { with_table(|table| table.set(self).to_vec()) }
    }

    /// Without a cut, which was taken back.
    pub(super) fn without_cut(self) -> Self {
        let mut causes = self.causes();
        causes.retain(|cause| !matches!(cause, Cause::Cut(_)));
        if causes.is_empty() {
            return Self::NONE;
        }
        with_table(|table| table.name(causes)).unwrap_or(self)
    }

    /// What the result of an op on this input has lost, if the op is not recorded.
    #[inline]
    pub(crate) fn of<T: Element>(name: &'static str, caller: Place, input: &Tensor<T>) -> Self {
        if input.stop_gradient() { input.lost() } else { now(name, caller, input) }
    }

    /// The same for an op without a derivative.
    #[inline]
    pub(crate) fn without_derivative<T: Element>(
        name: &'static str,
        caller: Place,
        input: &Tensor<T>,
    ) -> Self {
        if input.stop_gradient() { input.lost() } else { no_derivative(name, caller) }
    }
}

/// A tensor that wants a gradient is the input of an op that is not recorded.
#[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "read where it is hidden"))]
fn now<T: Element>(op: &'static str, at: Place, input: &Tensor<T>) -> Lost {
    match mode::recording() {
        Recording::NoGrad => match mode::off_since() {
            Some(scope) => {
                let key = [std::ptr::from_ref(at).addr(), op.as_ptr().addr(), address(scope)];
                remembered(key, || Lost::by(Cause::NoGrad { op, at, scope }))
            }
            None => Lost::NONE,
        },
        Recording::On => no_derivative(op, at),
        // What the library does in between is told by the op, layer or backward that it is part of.
        Recording::Off => Lost::NONE,
        Recording::Layer => {
            #[cfg(debug_assertions)]
            super::hidden::note(input, op, at);
            Lost::NONE
        }
    }
}

/// An op, or one of its outputs, has no derivative.
pub(crate) fn no_derivative(op: &'static str, at: Place) -> Lost {
    let key = [address(at), op.as_ptr().addr(), 0];
    remembered(key, || Lost::by(Cause::NoDerivative { op, at }))
}

fn address(place: Place) -> usize {
    std::ptr::from_ref(place).addr()
}

/// The result of an op that is not recorded.
#[inline]
pub(crate) fn unrecorded<T: Element, U: Element, const N: usize>(
    name: &'static str,
    caller: Place,
    inputs: [&Tensor<T>; N],
    value: Value<U>,
) -> Tensor<U> {
    let lost = inputs.iter().fold(Lost::NONE, |lost, x| lost.and(Lost::of(name, caller, x)));
    Tensor::new(value).with_lost(lost)
}
