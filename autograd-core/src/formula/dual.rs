//! A number and its slope along one direction: forward-mode differentiation.

#![allow(
    clippy::manual_map,
    reason = "a closure that is not inlined would be compiled for the baseline"
)]

use super::functions::{functions, named};
use super::lane::{Lane, Sealed};
use super::real::Real;

/// A number and its slope; none where the number is constant along the direction. The absence is
/// known when compiling, so constants cost nothing, and 0 · ∞ never comes from them.
#[derive(Clone, Copy, Debug)]
pub struct Dual<L> {
    value: L,
    slope: Option<L>,
    /// Whether it is constant along every direction.
    literal: bool,
}

impl<L: Lane> Dual<L> {
    #[inline(always)]
    fn new(value: L, slope: Option<L>) -> Self {
        Self { value, slope, literal: false }
    }

    /// The slope times what a function does to it.
    #[inline(always)]
    fn scaled(slope: Option<L>, factor: L) -> Option<L> {
        match slope {
            Some(slope) => Some(slope.mul(factor)),
            None => None,
        }
    }

    #[inline(always)]
    fn sum(a: Option<L>, b: Option<L>) -> Option<L> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.add(b)),
            (slope, None) | (None, slope) => slope,
        }
    }

    /// One of two slopes.
    #[inline(always)]
    fn choice(mask: L::Bool, a: Option<L>, b: Option<L>) -> Option<L> {
        match (a, b) {
            (None, None) => None,
            (Some(a), Some(b)) => Some(L::select(mask, a, b)),
            (Some(a), None) => Some(L::select(mask, a, L::lit(0.0))),
            (None, Some(b)) => Some(L::select(mask, L::lit(0.0), b)),
        }
    }

    /// `value` is that of the one that wins; a tie shares the slope.
    #[inline(always)]
    fn winner(value: L, wins: L::Bool, a: Self, b: Self) -> Self {
        let one = Self::choice(wins, a.slope, b.slope);
        // A literal bound is a constant, so a tie goes to the other one.
        let tie = if a.literal {
            b.slope
        } else if b.literal {
            a.slope
        } else {
            let half = L::lit(0.5);
            Self::sum(Self::scaled(a.slope, half), Self::scaled(b.slope, half))
        };
        Self::new(value, Self::choice(a.value.equal(b.value), tie, one))
    }
}

impl<L: Lane> Real<Dual<L>> {
    /// A number that changes with this slope along the direction.
    #[inline(always)]
    pub fn moving(value: Real<L>, slope: impl Into<Real<L>>) -> Self {
        Self(Dual::new(value.0, Some(slope.into().0)))
    }

    /// A number that does not change along the direction.
    #[inline(always)]
    pub fn constant(value: Real<L>) -> Self {
        Self(Dual::new(value.0, None))
    }

    /// The number without its slope.
    #[inline(always)]
    pub fn primal(self) -> Real<L> {
        Real(self.0.value)
    }

    /// The slope; none where the formula does not depend on what changes.
    #[inline(always)]
    pub fn slope(self) -> Option<Real<L>> {
        match self.0.slope {
            Some(slope) => Some(Real(slope)),
            None => None,
        }
    }
}

impl<L> Sealed for Dual<L> {}

/// The slope of a function from the line of the table.
macro_rules! slope {
    ($this:ident, $value:ident, { flat }) => {
        None
    };
    ($this:ident, $value:ident, { |$from:ident, $dy:ident| $slope:expr }) => {
        match $this.slope {
            Some(slope) => {
                let ($from, $dy) = (Real(named!($from, $this.value, $value)), Real(slope));
                let slope: Real<L> = $slope;
                Some(slope.0)
            }
            None => None,
        }
    };
}

macro_rules! dual {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        impl<L: Lane> Lane for Dual<L> {
            type Bool = L::Bool;

            #[inline(always)]
            fn lit(value: f64) -> Self {
                Self { value: L::lit(value), slope: None, literal: true }
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                let slope = Self::sum(self.slope, other.slope);
                Self::new(self.value.add(other.value), slope)
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                let slope = match (self.slope, other.slope) {
                    (Some(a), Some(b)) => Some(a.sub(b)),
                    (slope, None) => slope,
                    (None, Some(b)) => Some(b.neg()),
                };
                Self::new(self.value.sub(other.value), slope)
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                let slope = Self::sum(
                    Self::scaled(self.slope, other.value),
                    Self::scaled(other.slope, self.value),
                );
                Self::new(self.value.mul(other.value), slope)
            }

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                let value = self.value.div(other.value);
                let slope = match (self.slope, other.slope) {
                    (None, None) => None,
                    (Some(a), None) => Some(a.div(other.value)),
                    (None, Some(b)) => Some(value.mul(b).neg().div(other.value)),
                    (Some(a), Some(b)) => Some(a.sub(value.mul(b)).div(other.value)),
                };
                Self::new(value, slope)
            }

            #[inline(always)]
            fn neg(self) -> Self {
                let slope = match self.slope {
                    Some(slope) => Some(slope.neg()),
                    None => None,
                };
                Self::new(self.value.neg(), slope)
            }

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let value = self.value.mul_add(a.value, b.value);
                let product = Self::sum(
                    Self::scaled(self.slope, a.value),
                    Self::scaled(a.slope, self.value),
                );
                Self::new(value, Self::sum(product, b.slope))
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let wins = self.value.less(other.value);
                Self::winner(self.value.min(other.value), wins, self, other)
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let wins = other.value.less(self.value);
                Self::winner(self.value.max(other.value), wins, self, other)
            }

            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                let (a, b) = (Real(self.value), Real(exponent.value));
                let value = a.powf(b);
                let base = match self.slope {
                    // 0 where b is 0, also for a = 0, where a^(b-1) is infinite.
                    Some(slope) => {
                        let factor = b.eq(0.0).select(0.0, b * a.powf(b - 1.0));
                        Some(slope.mul(factor.0))
                    }
                    None => None,
                };
                let top = match exponent.slope {
                    // 0 where a is 0 and b is not negative: 0^b is constant there.
                    Some(slope) => {
                        let factor = (a.eq(0.0) & b.ge(0.0)).select(0.0, value * a.ln());
                        Some(slope.mul(factor.0))
                    }
                    None => None,
                };
                Self::new(value.0, Self::sum(base, top))
            }

            $(
                #[inline(always)]
                fn $method(self) -> Self {
                    let value = self.value.$method();
                    Self::new(value, slope!(self, value, $slope))
                }
            )*

            #[inline(always)]
            fn less(self, other: Self) -> L::Bool {
                self.value.less(other.value)
            }

            #[inline(always)]
            fn less_or_equal(self, other: Self) -> L::Bool {
                self.value.less_or_equal(other.value)
            }

            #[inline(always)]
            fn equal(self, other: Self) -> L::Bool {
                self.value.equal(other.value)
            }

            #[inline(always)]
            fn known(holds: bool) -> L::Bool {
                L::known(holds)
            }

            #[inline(always)]
            fn not(mask: L::Bool) -> L::Bool {
                L::not(mask)
            }

            #[inline(always)]
            fn and(a: L::Bool, b: L::Bool) -> L::Bool {
                L::and(a, b)
            }

            #[inline(always)]
            fn or(a: L::Bool, b: L::Bool) -> L::Bool {
                L::or(a, b)
            }

            #[inline(always)]
            fn select(mask: L::Bool, a: Self, b: Self) -> Self {
                let slope = Self::choice(mask, a.slope, b.slope);
                Self::new(L::select(mask, a.value, b.value), slope)
            }
        }
    };
}

functions! { dual }
