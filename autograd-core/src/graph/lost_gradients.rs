//! Why tensors are outside the graph: the causes, with their lines, that `explain` reports. A
//! tensor keeps one number, which names a set of causes. The result of an unrecorded op has the
//! causes of its inputs. The table of sets grows with the lines of a program, not with the ops that
//! run, and holds no tensor.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::context::{Place, Recording};
use super::mode::{self, Composite, is_grad_enabled};

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
    /// Whether the set reports this cause already. Of a `no_grad` scope only the first op is reported.
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

/// The name of a set of causes; [`NONE`](Self::NONE) if nothing was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost(u32);

const MAX_CAUSES: usize = 8;
const MAX_SETS: usize = 1 << 16;

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
        if self.sets.len() == MAX_SETS {
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

#[derive(Clone, Copy)]
struct CacheEntry {
    key: [usize; 3],
    lost: Lost,
}

const CACHE_SLOTS: usize = 64;

thread_local! {
    /// Indexed by a hash of the key; a new entry replaces the old one.
    static CACHE: [Cell<CacheEntry>; CACHE_SLOTS] =
        const { [const { Cell::new(CacheEntry { key: [0; 3], lost: Lost::NONE }) }; CACHE_SLOTS] };
    /// The `no_grad` scope of the last op that ran in one, and the causes of that op's result.
    static LAST_UNRECORDED: Cell<(usize, Lost)> = const { Cell::new((0, Lost::NONE)) };
}

/// Returns the cached set of a key, or computes and caches it. The key must not be all zeros.
fn cached(key: [usize; 3], find: impl FnOnce() -> Lost) -> Lost {
    // A `Location` is three words long.
    let at = ((key[0] >> 3) ^ (key[1] << 2) ^ (key[2] >> 3)) % CACHE_SLOTS;
    let entry = CACHE.with(|cache| cache[at].get());
    if entry.key == key {
        return entry.lost;
    }
    let lost = find();
    CACHE.with(|cache| cache[at].set(CacheEntry { key, lost }));
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
        cached([address(place), 2, 0], || Self::by(Cause::Detached(place)))
    }

    pub(super) fn by_cut(place: Place) -> Self {
        cached([address(place), 3, 0], || Self::by(Cause::Cut(place)))
    }

    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        if other == Self::NONE || other == self {
            self
        } else if self == Self::NONE {
            other
        } else {
            self.union(other)
        }
    }

    #[cold]
    fn union(self, other: Self) -> Self {
        let key = [self.0 as usize, other.0 as usize, usize::MAX];
        cached(key, || {
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

    /// The causes of a gradient that is computed now: none if it is recorded.
    pub(crate) fn of_gradient() -> Self {
        if is_grad_enabled() {
            return Self::NONE;
        }
        cached([1, 0, 0], || Self::by(Cause::Gradient))
    }

    /// The causes, in the order in which they occurred.
    pub(crate) fn causes(self) -> Vec<Cause> {
        if self == Self::NONE { Vec::new() } else { with_table(|table| table.set(self).to_vec()) }
    }

    /// The causes as text, if there are any.
    pub(crate) fn text(self) -> Option<String> {
        let causes: Vec<String> = self.causes().iter().map(ToString::to_string).collect();
        (!causes.is_empty()).then(|| causes.join(", and "))
    }

    /// The causes without cuts, after `set_stop_gradient(false)`.
    pub(super) fn without_cut(self) -> Self {
        let mut causes = self.causes();
        causes.retain(|cause| !matches!(cause, Cause::Cut(_)));
        if causes.is_empty() {
            return Self::NONE;
        }
        with_table(|table| table.name(causes)).unwrap_or(self)
    }

    /// Adds the cause why an op is not recorded now, though one of its inputs wants a gradient.
    pub(super) fn and_unrecorded(self, op: &'static str, at: Place) -> Self {
        let at = Composite::place(at);
        match mode::recording() {
            Recording::NoGrad => {
                let Some(scope) = mode::off_since() else { return self };
                // Only the first op of a scope is reported, so a chain of ops needs no further lookup.
                let since = address(scope);
                if self != Self::NONE && LAST_UNRECORDED.get() == (since, self) {
                    return self;
                }
                let key = [address(at), op.as_ptr().addr(), since];
                let now = cached(key, || Self::by(Cause::NoGrad { op, at, scope }));
                let lost = self.and(now);
                LAST_UNRECORDED.set((since, lost));
                lost
            }
            Recording::On => self.and(no_derivative(op, at)),
            // Part of an op or a backward, which is reported instead.
            Recording::CustomOp | Recording::Off => self,
        }
    }
}

pub(crate) fn no_derivative(op: &'static str, at: Place) -> Lost {
    let key = [address(at), op.as_ptr().addr(), 0];
    cached(key, || Lost::by(Cause::NoDerivative { op, at }))
}

fn address(place: Place) -> usize {
    std::ptr::from_ref(place).addr()
}
