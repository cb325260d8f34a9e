//! A number and its slope along one direction: forward-mode differentiation.

#![allow(
    clippy::manual_map,
    reason = "a closure that is not inlined would be compiled for the baseline"
)]

use super::functions::{functions, named, pairs};
use super::lane::{Compute, Condition, Lane};
use super::real::{Mask, Real};

/// A number and its slope; no slope if the number is constant along the direction. That is known at
/// compile time, so constants cost nothing and cause no 0 · ∞.
#[derive(Clone, Copy)]
pub struct Dual<L: Lane> {
    value: L,
    slope: Option<Slope<L>>,
    literal: bool,
}

/// A slope, and where it counts: elsewhere a selection took the other number, and the slope is zero,
/// whatever `value` holds. Functions of the number scale `value` alone; the mask is applied once,
/// where the slope is used, so no infinite factor meets the zero. `None` means everywhere.
#[derive(Clone, Copy)]
pub(super) struct Slope<L: Lane> {
    value: L,
    selected: Option<L::Bool>,
}

impl<L: Lane> Slope<L> {
    #[inline(always)]
    fn mapped(self, map: impl FnOnce(L) -> L) -> Self {
        Self { value: map(self.value), ..self }
    }

    #[inline(always)]
    fn scaled(self, factor: L) -> Self {
        self.mapped(|slope| slope.mul(factor))
    }

    /// The slope as a number, zero where it does not count.
    #[inline(always)]
    fn number(self) -> L {
        match self.selected {
            Some(selected) => L::select(selected, self.value, L::lit(0.0)),
            None => self.value,
        }
    }

    #[inline(always)]
    fn combine(self, other: Self, join: impl FnOnce(L, L) -> L) -> Self {
        let selected = match (self.selected, other.selected) {
            (Some(a), Some(b)) => Some(a.or(b)),
            _ => None,
        };
        Self { value: join(self.number(), other.number()), selected }
    }
}

impl<L: Lane> Dual<L> {
    #[inline(always)]
    fn new(value: L, slope: Option<Slope<L>>) -> Self {
        Self { value, slope, literal: false }
    }

    #[inline(always)]
    fn mapped(slope: Option<Slope<L>>, map: impl FnOnce(L) -> L) -> Option<Slope<L>> {
        match slope {
            Some(slope) => Some(slope.mapped(map)),
            None => None,
        }
    }

    #[inline(always)]
    fn scaled(slope: Option<Slope<L>>, factor: L) -> Option<Slope<L>> {
        Self::mapped(slope, |slope| slope.mul(factor))
    }

    #[inline(always)]
    fn sum(a: Option<Slope<L>>, b: Option<Slope<L>>) -> Option<Slope<L>> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.combine(b, |a, b| a.add(b))),
            (slope, None) | (None, slope) => slope,
        }
    }

    #[inline(always)]
    fn choice(mask: L::Bool, a: Option<Slope<L>>, b: Option<Slope<L>>) -> Option<Slope<L>> {
        let both = |a: Option<L::Bool>, mask| match a {
            Some(a) => a.and(mask),
            None => mask,
        };
        match (a, b) {
            (None, None) => None,
            (Some(a), Some(b)) => {
                let selected = match (a.selected, b.selected) {
                    (None, None) => None,
                    (a, b) => Some(both(a, mask).or(both(b, mask.not()))),
                };
                Some(Slope { value: L::select(mask, a.value, b.value), selected })
            }
            (Some(a), None) => Some(Slope { selected: Some(both(a.selected, mask)), ..a }),
            (None, Some(b)) => Some(Slope { selected: Some(both(b.selected, mask.not())), ..b }),
        }
    }

    /// The slope of a minimum or maximum, `value`. `loses`: `b` beats `a`. A tie shares the slope;
    /// NaN wins.
    #[inline(always)]
    fn winner(value: L, loses: L::Bool, a: Self, b: Self) -> Self {
        // A literal bound is a constant, so in a tie the other operand gets the slope.
        if b.literal {
            return Self::new(value, Self::choice(loses, b.slope, a.slope));
        }
        if a.literal {
            let loses = loses.or(a.value.equal(b.value)).or(b.value.equal(b.value).not());
            return Self::new(value, Self::choice(loses, b.slope, a.slope));
        }
        let only_b = b.value.equal(b.value).not().and(a.value.equal(a.value));
        let loses = loses.or(only_b);
        let half = L::lit(0.5);
        let tie = Self::sum(Self::scaled(a.slope, half), Self::scaled(b.slope, half));
        let one = Self::choice(loses, b.slope, a.slope);
        Self::new(value, Self::choice(a.value.equal(b.value), tie, one))
    }
}

#[doc(hidden)]
impl<L: Lane> Real<Dual<L>> {
    /// Creates a number with this slope along the direction.
    #[inline(always)]
    pub fn moving(value: Real<L>, slope: impl Into<Real<L>>) -> Self {
        Self(Dual::new(value.0, Some(Slope { value: slope.into().0, selected: None })))
    }

    #[inline(always)]
    pub fn constant(value: Real<L>) -> Self {
        Self(Dual::new(value.0, None))
    }

    #[inline(always)]
    pub fn primal(self) -> Real<L> {
        Real(self.0.value)
    }

    /// The slope times `dy`; 0 where a selection took the other number, whatever `dy` is. `None` if
    /// the formula does not depend on the direction.
    #[inline(always)]
    pub fn slope_times(self, dy: Real<L>) -> Option<Real<L>> {
        match self.0.slope {
            Some(slope) => Some(Real(slope.scaled(dy.0).number())),
            None => None,
        }
    }
}

impl<L: Lane> Mask<L> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn for_duals(self) -> Mask<Dual<L>> {
        Mask(self.0)
    }
}

macro_rules! slope {
    ($this:ident, $value:ident, { flat }) => {
        None
    };
    ($this:ident, $value:ident, { |$from:ident, $dy:ident| $slope:expr }) => {
        match $this.slope {
            Some(slope) => {
                let ($from, $dy) = (Real(named!($from, $this.value, $value)), Real(slope.value));
                let scaled: Real<L> = $slope;
                Some(Slope { value: scaled.0, ..slope })
            }
            None => None,
        }
    };
}

macro_rules! one_number {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        $(
            #[inline(always)]
            fn $method(self) -> Self {
                let value = self.value.$method();
                Self::new(value, slope!(self, value, $slope))
            }
        )*
    };
}

macro_rules! conditions {
    (
        numbers $numbers:tt
        conditions { $($condition:ident $f:ident |$a:ident, $b:ident| $holds:expr;)* }
    ) => {
        $(
            #[inline(always)]
            fn $condition(self, other: Self) -> L::Bool {
                self.value.$condition(other.value)
            }
        )*
    };
}

impl<L: Lane> Lane for Dual<L> {}

impl<L: Lane> Compute for Dual<L> {
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
            (Some(a), Some(b)) => Some(a.combine(b, |a, b| a.sub(b))),
            (slope, None) => slope,
            (None, Some(b)) => Some(b.mapped(L::neg)),
        };
        Self::new(self.value.sub(other.value), slope)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let slope =
            Self::sum(Self::scaled(self.slope, other.value), Self::scaled(other.slope, self.value));
        Self::new(self.value.mul(other.value), slope)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value.div(other.value);
        let slope = match (self.slope, other.slope) {
            (slope, None) => slope,
            (None, Some(b)) => Some(b.mapped(|b| value.mul(b).neg())),
            (Some(a), Some(b)) => Some(a.combine(b.scaled(value), |a, b| a.sub(b))),
        };
        Self::new(value, Self::mapped(slope, |slope| slope.div(other.value)))
    }

    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(self.value.neg(), Self::mapped(self.slope, L::neg))
    }

    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let value = self.value.mul_add(a.value, b.value);
        let product =
            Self::sum(Self::scaled(self.slope, a.value), Self::scaled(a.slope, self.value));
        Self::new(value, Self::sum(product, b.slope))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        let loses = other.value.less(self.value);
        Self::winner(self.value.min(other.value), loses, self, other)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        let loses = self.value.less(other.value);
        Self::winner(self.value.max(other.value), loses, self, other)
    }

    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        let (a, b) = (Real(self.value), Real(exponent.value));
        let value = a.powf(b);
        let base = match self.slope {
            // 0 where b is 0, even if a = 0, where a^(b-1) is infinite.
            Some(slope) => {
                let factor = b.eq(0.0).select(0.0, b * a.powf(b - 1.0));
                Some(slope.scaled(factor.0))
            }
            None => None,
        };
        let top = match exponent.slope {
            // 0 where a is 0 and b is not negative: there 0^b is constant.
            Some(slope) => {
                let factor = (a.eq(0.0) & b.ge(0.0)).select(0.0, value * a.ln());
                Some(slope.scaled(factor.0))
            }
            None => None,
        };
        Self::new(value.0, Self::sum(base, top))
    }

    #[inline(always)]
    fn select(mask: L::Bool, a: Self, b: Self) -> Self {
        let slope = Self::choice(mask, a.slope, b.slope);
        Self::new(L::select(mask, a.value, b.value), slope)
    }

    functions! { one_number }
    pairs! { conditions }
}
