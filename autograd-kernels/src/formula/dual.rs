//! A number and its slope along one direction: forward-mode differentiation.

#![allow(
    clippy::manual_map,
    reason = "a closure that is not inlined would be compiled for the baseline"
)]

use super::functions::{binaries, conditions, functions, named, named_of_two};
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

    /// A minimum or maximum, `value`. `loses`: `b` beats `a`. A tie shares the slope; NaN wins.
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

    /// A constant that is written as a number: a tie with it gives the other operand the whole slope.
    #[inline(always)]
    pub fn literal(value: Real<L>) -> Self {
        Self(Dual { value: value.0, slope: None, literal: true })
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

/// The slope along one argument.
macro_rules! along {
    ($slope:expr, $values:tt, |$($name:ident),*| $rule:expr) => {
        match $slope {
            Some(slope) => {
                $(let $name = Real(named_of_two!($name, $values, slope.value));)*
                let scaled: Real<L> = $rule;
                Some(Slope { value: scaled.0, ..slope })
            }
            None => None,
        }
    };
}

macro_rules! result_of_two {
    ($this:ident, $other:ident, $value:ident, { b if |$a:ident, $b:ident| $is_b:expr }) => {{
        let ($a, $b) = (Real($this.value), Real($other.value));
        let is_b: Mask<L> = $is_b;
        Self::winner($value, is_b.0, $this, $other)
    }};
    ($this:ident, $other:ident, $value:ident, { |$($x:ident),*| $of_a:expr, flat }) => {
        Self::new($value, along!($this.slope, [$this.value, $other.value, $value], |$($x),*| $of_a))
    };
    (
        $this:ident, $other:ident, $value:ident,
        { |$($x:ident),*| $of_a:expr, |$($z:ident),*| $of_b:expr }
    ) => {{
        let of_a = along!($this.slope, [$this.value, $other.value, $value], |$($x),*| $of_a);
        let of_b = along!($other.slope, [$this.value, $other.value, $value], |$($z),*| $of_b);
        Self::new($value, Self::sum(of_a, of_b))
    }};
}

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $kernel:expr, $rule:tt;
    )*) => {
        $(
            #[inline(always)]
            fn $number(self, other: Self) -> Self {
                let value = self.value.$number(other.value);
                result_of_two!(self, other, value, $rule)
            }
        )*
    };
}

macro_rules! comparisons {
    ($($condition:ident $compare:ident |$a:ident, $b:ident| $holds:expr;)*) => {
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
    fn select(mask: L::Bool, a: Self, b: Self) -> Self {
        let slope = Self::choice(mask, a.slope, b.slope);
        Self::new(L::select(mask, a.value, b.value), slope)
    }

    functions! { one_number }
    binaries! { two_numbers }
    conditions! { comparisons }
}
