//! Where tensors outside the graph lost it: the lines that `explain` reports.
//!
//! A tensor keeps one number, the name of a set of causes. An op that is not recorded hands on
//! those of its inputs. Sets stand in a table that grows with the lines of a program, not with
//! what runs there, and holds no tensor.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::mode::{self, Composite, Recording, is_grad_enabled};

type Place = &'static Location<'static>;

/// Why a tensor that was computed from one that wants a gradient is outside the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    Detached(Place),
    /// `set_stop_gradient(true)`.
    Cut(Place),
    /// The first op under `no_grad`, and where that scope was opened.
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

impl Cause {
    /// Whether it is in this set; of the ops of a scope the first is enough.
    fn is_reported_by(&self, set: &[Self]) -> bool {
        set.iter().any(|known| match (known, self) {
            (Self::NoGrad { scope: known, .. }, Self::NoGrad { scope, .. }) => known == scope,
            _ => known == self,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detached(place) => write!(f, "`detach()`ed at {place}"),
            Self::Cut(place) => write!(f, "cut off by `set_stop_gradient(true)` at {place}"),
            Self::NoGrad { op, at, scope } => {
                write!(f, "computed under the `no_grad` at {scope}, first by {op} at {at}")
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

/// So many causes are reported of a tensor at most, and so many sets are kept.
const MAX_CAUSES: usize = 8;
const SETS: usize = 1 << 16;

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
    static ANSWERS: [Cell<Known>; KNOWN] =
        const { [const { Cell::new(Known { key: [0; 3], lost: Lost::NONE }) }; KNOWN] };
    /// A `no_grad`, and a set that names it.
    static LAST: Cell<(usize, Lost)> = const { Cell::new((0, Lost::NONE)) };
}

/// The answer to a key other than zeros, remembered by this thread.
fn remembered(key: [usize; 3], find: impl FnOnce() -> Lost) -> Lost {
    // Places are three words long.
    let at = ((key[0] >> 3) ^ (key[1] << 2) ^ (key[2] >> 3)) % KNOWN;
    let known = ANSWERS.with(|answers| answers[at].get());
    if known.key == key {
        return known.lost;
    }
    let lost = find();
    ANSWERS.with(|answers| answers[at].set(Known { key, lost }));
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
    fn by(cause: Cause) -> Self {
        with_table(|table| table.name(vec![cause])).unwrap_or(Self::NONE)
    }

    pub(super) fn by_detach(place: Place) -> Self {
        remembered([address(place), 2, 0], || Self::by(Cause::Detached(place)))
    }

    pub(super) fn by_cut(place: Place) -> Self {
        remembered([address(place), 3, 0], || Self::by(Cause::Cut(place)))
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
                let new = table.set(other).iter().filter(|cause| !cause.is_reported_by(&set));
                let new: Vec<Cause> = new.copied().collect();
                set.extend(new);
                set.truncate(MAX_CAUSES);
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

    /// An op whose input wants a gradient is not recorded.
    pub(super) fn and_now(self, op: &'static str, at: Place) -> Self {
        let at = Composite::place(at);
        match mode::recording() {
            Recording::NoGrad => {
                let Some(scope) = mode::off_since() else { return self };
                // The first op of a scope is reported, so a chain of them has nothing to look up.
                let since = address(scope);
                if self != Self::NONE && LAST.get() == (since, self) {
                    return self;
                }
                let key = [address(at), op.as_ptr().addr(), since];
                let now = remembered(key, || Self::by(Cause::NoGrad { op, at, scope }));
                let lost = self.and(now);
                LAST.set((since, lost));
                lost
            }
            Recording::On => self.and(no_derivative(op, at)),
            // What the library does in between is reported by the op, layer or backward that it is part
            // of.
            Recording::Layer | Recording::Off => self,
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
