//! Elementary functions of `f32` and `f64` that vectorise.
//!
//! Each function is straight-line code: no branch, no call, no table look-up, only arithmetic and selects. A loop over
//! a slice inside a [`Kernel`](super::simd::Kernel) therefore becomes vector code of whatever width the level has.
//!
//! The figures are the largest errors seen, in units in the last place of the exact result: f32 on every input (`pow`:
//! 10⁸ pairs), f64 on 10⁶ inputs against 200-bit arithmetic, at all levels. Between levels with and without a fused
//! multiply-add the last bit may differ. NaN gives NaN, zeros keep their sign where the function is odd, and
//! subnormal inputs and results are exact to the same figure.

#![allow(dead_code, reason = "a complete set, whichever part of it the engine uses")]

mod f32;
mod f64;
#[cfg(test)]
mod tests;

use std::ops::{Add, Div, Mul, Neg, Sub};

/// What the formulas of [`Math`] are made of: bit-level steps and tables, written out per element type.
///
/// Polynomials are minimax fits of the relative error, lowest power first, each coefficient rounded and the rest fitted
/// again. `_HI` and `_LO` are a constant in two parts; a `_HI` with trailing zeros makes its product with an exponent
/// exact without a fused multiply-add.
pub(crate) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// 1.5 · 2^mantissa bits: adding it leaves the nearest integer in the low bits.
    const MAGIC: Self;
    /// 2^mantissa bits: from here on every value is an integer.
    const INTEGERS: Self;
    const INFINITY: Self;
    const NAN: Self;

    const LOG2_E: Self;
    const LN2_HI: Self;
    const LN2_LO: Self;
    /// log₂e, log₁₀e and log₁₀2.
    const LOG2_E_LO: Self;
    const LOG10_E: Self;
    const LOG10_E_LO: Self;
    const LOG10_2_HI: Self;
    const LOG10_2_LO: Self;
    const PI_HI: Self;
    const PI_LO: Self;
    /// π/2 for a fused reduction.
    const HALF_PI: [Self; 3];
    const TWO_OVER_PI: Self;

    /// Where e^x is 0, where it is ∞, and where 2 sinh x is ∞.
    const EXP_MIN: Self;
    const EXP_MAX: Self;
    const SINH_MAX: Self;
    /// A power of 2 about half way down, and its exponent.
    const TINY: Self;
    const TINY_EXPONENT: Self;
    /// (e^r - 1 - r) / r² on |r| ≤ ln2 / 2.
    const EXP: &'static [Self];
    /// Where e^x - 1 is -1 and where it is ∞ with a last exponent of 2^(MAX_EXP).
    const EXP_M1_MIN: Self;
    const EXP_M1_MAX: Self;
    /// (e^r - 1 - r) / r² on |r| ≤ 1/2.
    const EXP_M1: &'static [Self];

    /// tanh x = x + x³ N(x²) / D(x²) below `TANH_SPLIT`; 1 from `TANH_MAX` on.
    const TANH_SPLIT: Self;
    const TANH_MAX: Self;
    const TANH_N: &'static [Self];
    const TANH_D: &'static [Self];
    /// (sinh x - x) / x³ in x² on |x| ≤ 1.
    const SINH: &'static [Self];

    /// erf x = x + x P(x²) below `ERF_SPLIT`; 1 from `ERF_MAX` on.
    const ERF_SPLIT: Self;
    const ERF_MAX: Self;
    const ERF: &'static [Self];
    /// -ln(1 - erf x) in between.
    const ERFC: &'static [Self];

    /// (sin r - r) / r³, (cos r - 1 + r²/2) / r⁴ and (tan r - r) / r³ in r² on |r| ≤ π/4.
    const SIN: &'static [Self];
    const COS: &'static [Self];
    const TAN: &'static [Self];
    /// (atan x - x) / x³ in x² on |x| ≤ 1.
    const ATAN: &'static [Self];
    /// (asin x - x) / x³ in x² on |x| ≤ 1/2.
    const ASIN: &'static [Self];

    fn lit(value: f64) -> Self;
    /// self · b + c, in one rounding if `FMA`.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
    fn magnitude(self) -> Self;
    fn with_sign_of(self, sign: Self) -> Self;
    fn root(self) -> Self;
    fn nan(self) -> bool;
    fn select(condition: bool, a: Self, b: Self) -> Self;

    /// With n = self - MAGIC: 2ⁿ, for n that give a normal number.
    fn pow2(self) -> Self;
    /// With n = self - MAGIC: two factors of 2ⁿ⁺ˢʰⁱᶠᵗ, for n that do not.
    fn pow2_halves(self, shift: i32) -> (Self, Self);
    /// With n = self - MAGIC: is n odd?
    fn odd(self) -> bool;
    /// With n = t - MAGIC: self negated if n mod 4 is 2 or 3.
    fn flip(self, t: Self) -> Self;
    /// self = 2^e (1 + f) with √½ ≤ 1 + f < √2, for self > 0; gives (e, f).
    fn split(self) -> (Self, Self);
    /// The same, and 2^-e, for normal numbers only.
    fn split_normal(self) -> (Self, Self, Self);
    /// x = n π/2 + r + low without a fused multiply-add; gives (n + MAGIC, r, low).
    fn quadrant_plain(self) -> (Self, Self, Self);
    /// ln(1 + f) - f on √½ - 1 ≤ f ≤ √2 - 1.
    fn ln_1p_tail<const FMA: bool>(f: Self) -> Self;
    /// x^y for x ≥ 0.
    fn pow_magnitude<const FMA: bool>(x: Self, y: Self) -> Self;

    fn to_floor(self) -> Self;
    fn to_ceil(self) -> Self;
    fn to_even(self) -> Self;
    fn to_trunc(self) -> Self;
    fn std_sin(self) -> Self;
    fn std_cos(self) -> Self;
    fn std_tan(self) -> Self;
}

/// The bit-level half of [`Real`], which differs between the two types in widths only.
macro_rules! bit_level {
    ($float:ident, $bits:ident, mantissa $mantissa:literal, bias $bias:literal) => {
        const MAGIC: $float = 1.5 / $float::EPSILON;
        const INTEGERS: $float = 1.0 / $float::EPSILON;
        const INFINITY: $float = $float::INFINITY;
        const NAN: $float = $float::NAN;

        #[inline(always)]
        fn lit(value: f64) -> $float {
            value as $float
        }

        #[inline(always)]
        fn fma<const FMA: bool>(self, b: $float, c: $float) -> $float {
            if FMA { self.mul_add(b, c) } else { self * b + c }
        }

        #[inline(always)]
        fn magnitude(self) -> $float {
            self.abs()
        }

        #[inline(always)]
        fn with_sign_of(self, sign: $float) -> $float {
            self.copysign(sign)
        }

        #[inline(always)]
        fn root(self) -> $float {
            self.sqrt()
        }

        #[inline(always)]
        fn nan(self) -> bool {
            self.is_nan()
        }

        #[inline(always)]
        fn select(condition: bool, a: $float, b: $float) -> $float {
            if condition { a } else { b }
        }

        #[inline(always)]
        fn pow2(self) -> $float {
            $float::from_bits(self.to_bits().wrapping_add($bias) << $mantissa)
        }

        #[inline(always)]
        fn pow2_halves(self, shift: i32) -> ($float, $float) {
            const MAGIC_BITS: $bits = <$float as Real>::MAGIC.to_bits();
            let both = self.to_bits().wrapping_sub(MAGIC_BITS.wrapping_sub((2 * $bias + shift) as $bits));
            let half = both >> 1;
            (
                $float::from_bits(half << $mantissa),
                $float::from_bits(both.wrapping_sub(half) << $mantissa),
            )
        }

        #[inline(always)]
        fn odd(self) -> bool {
            self.to_bits() & 1 != 0
        }

        #[inline(always)]
        fn flip(self, t: $float) -> $float {
            $float::from_bits(self.to_bits() ^ ((t.to_bits() & 2) << ($bits::BITS - 2)))
        }

        #[inline(always)]
        fn split(self) -> ($float, $float) {
            const LIFT: $float = 1.0 / $float::EPSILON;
            let subnormal = self < $float::MIN_POSITIVE;
            let (e, f, _) = Self::select(subnormal, self * LIFT, self).split_normal();
            (e - Self::select(subnormal, $mantissa as $float, 0.0), f)
        }

        #[inline(always)]
        fn split_normal(self) -> ($float, $float, $float) {
            const ONE: $bits = $bias << $mantissa;
            const SQRT_HALF: $bits = std::$float::consts::FRAC_1_SQRT_2.to_bits();
            const FRACTION: $bits = (1 << $mantissa) - 1;
            // The exponent becomes a float by standing in the low bits of 2^mantissa: there is no vector instruction
            // for 64-bit integers before AVX-512.
            let shifted = self.to_bits().wrapping_add(ONE - SQRT_HALF);
            let e = $float::from_bits((shifted >> $mantissa) | Self::INTEGERS.to_bits())
                - (Self::INTEGERS + $bias as $float);
            let m = $float::from_bits((shifted & FRACTION).wrapping_add(SQRT_HALF));
            let inverse = $float::from_bits((2 * ONE).wrapping_sub(shifted & !FRACTION));
            (e, m - 1.0, inverse)
        }

        #[inline(always)]
        fn to_floor(self) -> $float {
            self.floor()
        }

        #[inline(always)]
        fn to_ceil(self) -> $float {
            self.ceil()
        }

        #[inline(always)]
        fn to_even(self) -> $float {
            self.round_ties_even()
        }

        #[inline(always)]
        fn to_trunc(self) -> $float {
            self.trunc()
        }

        fn std_sin(self) -> $float {
            self.sin()
        }

        fn std_cos(self) -> $float {
            self.cos()
        }

        fn std_tan(self) -> $float {
            self.tan()
        }
    };
}
use bit_level;

/// The polynomial with coefficients `c`, one of the constant tables: the loops are unrolled and the loads folded.
///
/// In powers of x², or x⁴ if it is long: what limits these loops is the length of the chain of dependent operations.
#[inline(always)]
fn poly<T: Real, const FMA: bool>(x: T, c: &[T]) -> T {
    let square = x * x;
    let step = if c.len() > 9 { 4 } else { 2 };
    let power = if step == 4 { square * square } else { square };
    let mut i = (c.len() - 1) / step * step;
    let mut sum = group::<T, FMA>(x, square, &c[i..]);
    while i > 0 {
        i -= step;
        sum = sum.fma::<FMA>(power, group::<T, FMA>(x, square, &c[i..i + step]));
    }
    sum
}

/// The polynomial of one to four coefficients.
#[inline(always)]
fn group<T: Real, const FMA: bool>(x: T, square: T, c: &[T]) -> T {
    match *c {
        [a, b] => b.fma::<FMA>(x, a),
        [a, b, c] => c.fma::<FMA>(square, b.fma::<FMA>(x, a)),
        [a, b, c, d] => d.fma::<FMA>(x, c).fma::<FMA>(square, b.fma::<FMA>(x, a)),
        _ => c[0],
    }
}

/// x = n ln2 + r with |r| ≤ ln2 / 2; gives (n + MAGIC, r).
#[inline(always)]
fn reduce<T: Real, const FMA: bool>(x: T) -> (T, T) {
    let t = x.fma::<FMA>(T::LOG2_E, T::MAGIC);
    (t, remainder::<T, FMA>(x, t))
}

#[inline(always)]
fn remainder<T: Real, const FMA: bool>(x: T, t: T) -> T {
    let n = T::MAGIC - t;
    n.fma::<FMA>(T::LN2_LO, n.fma::<FMA>(T::LN2_HI, x))
}

/// e^r - 1 on |r| ≤ ln2 / 2.
#[inline(always)]
fn exp_m1_near_0<T: Real, const FMA: bool>(r: T) -> T {
    (r * r).fma::<FMA>(poly::<T, FMA>(r, T::EXP), r)
}

/// x limited to lo..=hi; NaN stays.
#[inline(always)]
fn clamp<T: Real>(x: T, lo: T, hi: T) -> T {
    let x = T::select(x < lo, lo, x);
    T::select(x > hi, hi, x)
}

/// e^x · 2^shift, subnormal results and ∞ included.
#[inline(always)]
fn exp_scaled<T: Real, const FMA: bool>(x: T, shift: i32, max: T) -> T {
    let (t, r) = reduce::<T, FMA>(clamp(x, T::EXP_MIN, max));
    let (a, b) = t.pow2_halves(shift);
    (T::lit(1.0) + exp_m1_near_0::<T, FMA>(r)) * a * b
}

/// (e, f, tail) with ln x = e ln2 + f + tail.
#[inline(always)]
fn ln_parts<T: Real, const FMA: bool>(x: T) -> (T, T, T) {
    let (e, f) = x.split();
    (e, f, T::ln_1p_tail::<FMA>(f))
}

/// `y`, except where x is 0, negative, ∞ or NaN.
#[inline(always)]
fn ln_edges<T: Real>(x: T, y: T) -> T {
    let zero = T::lit(0.0);
    let edge = T::select(x == zero, -T::INFINITY, T::NAN);
    T::select(x == T::INFINITY, x, T::select(x > zero, y, edge))
}

/// log of another base b, from log_b e and log_b 2.
#[inline(always)]
fn log_base<T: Real, const FMA: bool>(x: T, of_e: [T; 2], of_2: [T; 2]) -> T {
    let (e, f, tail) = ln_parts::<T, FMA>(x);
    let low = tail.fma::<FMA>(of_e[0], f.fma::<FMA>(of_e[1], e * of_2[1]));
    let y = e.fma::<FMA>(of_2[0], f.fma::<FMA>(of_e[0], low));
    ln_edges(x, y)
}

/// x = n π/2 + r + low with |r| ≤ π/4; gives (n + MAGIC, r, low).
#[inline(always)]
fn quadrant<T: Real, const FMA: bool>(x: T) -> (T, T, T) {
    if !FMA {
        return x.quadrant_plain();
    }
    let [a, b, c] = T::HALF_PI;
    let t = x.fma::<FMA>(T::TWO_OVER_PI, T::MAGIC);
    let n = T::MAGIC - t;
    // The first difference is exact. The second may cancel as well, next to a multiple of π/2, so its product is kept
    // whole.
    let first = n.fma::<FMA>(a, x);
    let part = n * b;
    let r = first + part;
    let lost = ((first - r) + part) + n.fma::<FMA>(b, -part);
    (t, r, n.fma::<FMA>(c, lost))
}

#[inline(always)]
fn sin_near_0<T: Real, const FMA: bool>(r: T, low: T) -> T {
    let square = r * r;
    r + (r * square).fma::<FMA>(poly::<T, FMA>(square, T::SIN), low)
}

#[inline(always)]
fn cos_near_0<T: Real, const FMA: bool>(r: T, low: T) -> T {
    let square = r * r;
    let half = T::lit(0.5) * square;
    let head = T::lit(1.0) - half;
    let rest = (T::lit(1.0) - head) - half;
    head + (square * square).fma::<FMA>(poly::<T, FMA>(square, T::COS), (-r).fma::<FMA>(low, rest))
}

/// (t, tail) with asin |x| = t + tail, or 2 (t + tail) = acos |x| where |x| > 1/2.
#[inline(always)]
fn asin_parts<T: Real, const FMA: bool>(a: T, far: bool) -> (T, T) {
    let half = T::lit(0.5);
    let square = T::select(far, (-half).fma::<FMA>(a, half), a * a);
    let t = T::select(far, square.root(), a);
    (t, t * square * poly::<T, FMA>(square, T::ASIN))
}

#[inline(always)]
fn integer<T: Real>(x: T) -> bool {
    let a = x.magnitude();
    (a >= T::INTEGERS) | ((a + T::INTEGERS) - T::INTEGERS == a)
}

/// Elementary functions; `FMA` as given to [`Kernel::run`](super::simd::Kernel::run).
pub(crate) trait Math: Real {
    /// |x| up to here may be given to [`v_sin`](Math::v_sin), [`v_cos`](Math::v_cos) and [`v_tan`](Math::v_tan);
    /// see [`map_angles`].
    const ANGLE_MAX: Self;

    /// e^x. f32 1.00, f64 1.00.
    #[inline(always)]
    fn v_exp<const FMA: bool>(self) -> Self {
        exp_scaled::<Self, FMA>(self, 0, Self::EXP_MAX)
    }

    /// e^x - 1. f32 ?, f64 ?.
    #[inline(always)]
    fn v_exp_m1<const FMA: bool>(self) -> Self {
        let (one, half) = (Self::lit(1.0), Self::lit(0.5));
        let x = clamp(self, Self::EXP_M1_MIN, Self::EXP_M1_MAX);
        // n = 0 for longer than rounding would have it: just above ln2 / 2, 2p + 1 would cancel.
        let t = x.fma::<FMA>(Self::LOG2_E, Self::MAGIC);
        let t = Self::select(x.magnitude() < half, Self::MAGIC, t);
        let r = remainder::<Self, FMA>(x, t);
        let p = (r * r).fma::<FMA>(poly::<Self, FMA>(r, Self::EXP_M1), r);
        // Half of the result first: 2^n itself may be out of range.
        let scale = (t - one).pow2();
        let y = p.fma::<FMA>(scale, scale - half);
        Self::select(self.magnitude() < Self::lit(1e-30), self, y + y)
    }

    /// ln x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_ln<const FMA: bool>(self) -> Self {
        let (e, f, tail) = ln_parts::<Self, FMA>(self);
        let low = e.fma::<FMA>(Self::LN2_LO, tail);
        ln_edges(self, e.fma::<FMA>(Self::LN2_HI, f + low))
    }

    /// ln(1 + x). f32 ?, f64 ?.
    #[inline(always)]
    fn v_ln_1p<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let u = one + self;
        let (e, f, inverse) = u.split_normal();
        // Where 1 + x needs no scaling, x itself is f. Elsewhere the rounding error of 1 + x is put back; the derivative
        // 1 / (1 + f) that it is multiplied by may be rough.
        let near = e == zero;
        let lost = Self::select(near | (u > Self::INTEGERS), zero, (self - (u - one)) * inverse);
        let f = Self::select(near, self, f);
        let slope = f.fma::<FMA>(f.fma::<FMA>(Self::lit(0.84), Self::lit(-0.95)), one);
        let tail = slope.fma::<FMA>(lost, Self::ln_1p_tail::<FMA>(f));
        let low = e.fma::<FMA>(Self::LN2_LO, tail);
        let y = ln_edges(u, e.fma::<FMA>(Self::LN2_HI, f + low));
        Self::select(u == one, self, y)
    }

    /// log₂ x; exact for powers of 2. f32 ?, f64 ?.
    #[inline(always)]
    fn v_log2<const FMA: bool>(self) -> Self {
        log_base::<Self, FMA>(self, [Self::LOG2_E, Self::LOG2_E_LO], [Self::lit(1.0), Self::lit(0.0)])
    }

    /// log₁₀ x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_log10<const FMA: bool>(self) -> Self {
        log_base::<Self, FMA>(self, [Self::LOG10_E, Self::LOG10_E_LO], [Self::LOG10_2_HI, Self::LOG10_2_LO])
    }

    /// tanh x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_tanh<const FMA: bool>(self) -> Self {
        let one = Self::lit(1.0);
        let a = self.magnitude();
        let small = a < Self::TANH_SPLIT;
        let square = a * a;
        let (t, r) = reduce::<Self, FMA>({
            let limited = Self::select(a > Self::TANH_MAX, Self::TANH_MAX, a);
            limited + limited
        });
        // x + x³ N / D or 1 - 2 / (e^2x + 1): one division serves both.
        let scale = t.pow2();
        let far = exp_m1_near_0::<Self, FMA>(r).fma::<FMA>(scale, one + scale);
        let near = poly::<Self, FMA>(square, Self::TANH_D);
        let top = a * square * poly::<Self, FMA>(square, Self::TANH_N);
        let quotient = Self::select(small, top, Self::lit(-2.0)) / Self::select(small, near, far);
        (Self::select(small, a, one) + quotient).with_sign_of(self)
    }

    /// 1 / (1 + e^-x). f32 ?, f64 ?.
    #[inline(always)]
    fn v_sigmoid<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let a = self.magnitude();
        let (t, r) = reduce::<Self, FMA>(Self::select(a > -Self::EXP_MIN, -Self::EXP_MIN, a));
        let p = exp_m1_near_0::<Self, FMA>(r);
        // 1 + e^|x| is scaled by TINY, so that e^|x| stays in range where its inverse is subnormal.
        let scale = (t + Self::TINY_EXPONENT).pow2();
        let sum = scale + Self::TINY;
        let d = p.fma::<FMA>(scale, sum);
        let lost = p.fma::<FMA>(scale, sum - d);
        let inverse = one / d;
        let below = (-inverse).fma::<FMA>(inverse * lost, inverse) * Self::TINY;
        Self::select(self < zero, below, one - below)
    }

    /// ln(1 + e^x), without overflow. f32 ?, f64 ?.
    #[inline(always)]
    fn v_softplus<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let z = exp_scaled::<Self, FMA>(-self.magnitude(), 0, zero);
        // ln(1 + z): 1 + z is halved from √2 on.
        let halved = z > Self::lit(0.41421356);
        let f = Self::select(halved, (z - one) * Self::lit(0.5), z);
        let low = Self::ln_1p_tail::<FMA>(f) + Self::select(halved, Self::LN2_LO, zero);
        let ln = (f + low) + Self::select(halved, Self::LN2_HI, zero);
        Self::select(self > zero, self, zero) + ln
    }

    /// erf x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_erf<const FMA: bool>(self) -> Self {
        let one = Self::lit(1.0);
        let a = self.magnitude();
        let near = a.fma::<FMA>(poly::<Self, FMA>(a * a, Self::ERF), a);
        let limited = Self::select(a > Self::ERF_MAX, Self::ERF_MAX, a);
        let (t, r) = reduce::<Self, FMA>(-poly::<Self, FMA>(limited, Self::ERFC));
        let scale = t.pow2();
        let far = (-exp_m1_near_0::<Self, FMA>(r)).fma::<FMA>(scale, one - scale);
        Self::select(a < Self::ERF_SPLIT, near, far).with_sign_of(self)
    }

    /// sin x for |x| ≤ [`ANGLE_MAX`](Math::ANGLE_MAX). f32 ?, f64 ?.
    #[inline(always)]
    fn v_sin<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let (sin, cos) = (sin_near_0::<Self, FMA>(r, low), cos_near_0::<Self, FMA>(r, low));
        let y = Self::select(t.odd(), cos, sin).flip(t);
        Self::select(self == Self::lit(0.0), self, y)
    }

    /// cos x for |x| ≤ [`ANGLE_MAX`](Math::ANGLE_MAX). f32 ?, f64 ?.
    #[inline(always)]
    fn v_cos<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let (sin, cos) = (sin_near_0::<Self, FMA>(r, low), cos_near_0::<Self, FMA>(r, low));
        Self::select(t.odd(), sin, cos).flip(t + Self::lit(1.0))
    }

    /// tan x for |x| ≤ [`ANGLE_MAX`](Math::ANGLE_MAX). f32 ?, f64 ?.
    #[inline(always)]
    fn v_tan<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let square = r * r;
        let rest = (r * square).fma::<FMA>(poly::<Self, FMA>(square, Self::TAN), low.fma::<FMA>(square, low));
        let tan = r + rest;
        let y = Self::select(t.odd(), Self::lit(-1.0) / tan, tan);
        Self::select(self == Self::lit(0.0), self, y)
    }

    /// atan x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_atan<const FMA: bool>(self) -> Self {
        let one = Self::lit(1.0);
        let a = self.magnitude();
        let far = a > one;
        let t = Self::select(far, one, a) / Self::select(far, a, one);
        let square = t * t;
        let tail = t * square * poly::<Self, FMA>(square, Self::ATAN);
        let [hi, lo, _] = Self::HALF_PI;
        Self::select(far, (hi - t) + (lo - tail), t + tail).with_sign_of(self)
    }

    /// asin x; NaN for |x| > 1. f32 ?, f64 ?.
    #[inline(always)]
    fn v_asin<const FMA: bool>(self) -> Self {
        let a = self.magnitude();
        let far = a > Self::lit(0.5);
        let (t, tail) = asin_parts::<Self, FMA>(a, far);
        let [hi, lo, _] = Self::HALF_PI;
        Self::select(far, hi - ((t + t) + ((tail + tail) - lo)), t + tail).with_sign_of(self)
    }

    /// acos x; NaN for |x| > 1. f32 ?, f64 ?.
    #[inline(always)]
    fn v_acos<const FMA: bool>(self) -> Self {
        let a = self.magnitude();
        let far = a > Self::lit(0.5);
        let (t, tail) = asin_parts::<Self, FMA>(a, far);
        let [hi, lo, _] = Self::HALF_PI;
        let twice = (t + tail) + (t + tail);
        let left = Self::PI_HI - (twice - Self::PI_LO);
        let middle = hi - (self - (lo - tail.with_sign_of(self)));
        Self::select(far, Self::select(self < Self::lit(0.0), left, twice), middle)
    }

    /// sinh x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_sinh<const FMA: bool>(self) -> Self {
        let a = self.magnitude();
        let square = a * a;
        let near = (a * square).fma::<FMA>(poly::<Self, FMA>(square, Self::SINH), a);
        let half = exp_scaled::<Self, FMA>(a, -1, Self::SINH_MAX);
        let far = half - Self::lit(0.25) / half;
        Self::select(a < Self::lit(1.0), near, far).with_sign_of(self)
    }

    /// cosh x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_cosh<const FMA: bool>(self) -> Self {
        let half = exp_scaled::<Self, FMA>(self.magnitude(), -1, Self::SINH_MAX);
        half + Self::lit(0.25) / half
    }

    /// x^y with the edges of `powf`: x⁰ = 1^y = 1, a negative x needs a whole y. f32 ?, f64 ?.
    #[inline(always)]
    fn v_pow<const FMA: bool>(self, y: Self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let a = self.magnitude();
        let power = Self::pow_magnitude::<FMA>(a, y);
        let whole = integer(y);
        let odd = whole & !integer(y * Self::lit(0.5));
        let power = Self::select(odd, power.with_sign_of(self), power);
        let undefined = (self < zero) & (a < Self::INFINITY) & !whole & !y.nan();
        let power = Self::select(undefined, Self::NAN, power);
        Self::select((self == one) | (y == zero), one, power)
    }

    /// √x, correctly rounded.
    #[inline(always)]
    fn v_sqrt<const FMA: bool>(self) -> Self {
        self.root()
    }

    /// 1 / √x. f32 ?, f64 ?.
    #[inline(always)]
    fn v_rsqrt<const FMA: bool>(self) -> Self {
        Self::lit(1.0) / self.root()
    }

    /// 1 / x, correctly rounded.
    #[inline(always)]
    fn v_recip<const FMA: bool>(self) -> Self {
        Self::lit(1.0) / self
    }

    /// |x|.
    #[inline(always)]
    fn v_abs<const FMA: bool>(self) -> Self {
        self.magnitude()
    }

    /// The largest integer ≤ x.
    #[inline(always)]
    fn v_floor<const FMA: bool>(self) -> Self {
        if FMA {
            return self.to_floor();
        }
        let near = self.v_round::<FMA>();
        Self::select(near > self, near - Self::lit(1.0), near).with_sign_of(self)
    }

    /// The smallest integer ≥ x.
    #[inline(always)]
    fn v_ceil<const FMA: bool>(self) -> Self {
        if FMA {
            return self.to_ceil();
        }
        let near = self.v_round::<FMA>();
        Self::select(near < self, near + Self::lit(1.0), near).with_sign_of(self)
    }

    /// The nearest integer, the even one of two.
    #[inline(always)]
    fn v_round<const FMA: bool>(self) -> Self {
        if FMA {
            return self.to_even();
        }
        // Baselines without FMA have no rounding instruction either.
        let a = self.magnitude();
        let near = ((a + Self::INTEGERS) - Self::INTEGERS).with_sign_of(self);
        Self::select(a < Self::INTEGERS, near, self)
    }

    /// x without its fraction.
    #[inline(always)]
    fn v_trunc<const FMA: bool>(self) -> Self {
        if FMA {
            return self.to_trunc();
        }
        self.magnitude().v_floor::<FMA>().with_sign_of(self)
    }

    /// -1, 1, or x itself if it is 0 or NaN.
    #[inline(always)]
    fn v_signum<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        Self::select(self > zero, one, Self::select(self < zero, -one, self))
    }

    /// The smaller one, or NaN if either is.
    #[inline(always)]
    fn v_min<const FMA: bool>(self, other: Self) -> Self {
        Self::select((self < other) | self.nan(), self, other)
    }

    /// The larger one, or NaN if either is.
    #[inline(always)]
    fn v_max<const FMA: bool>(self, other: Self) -> Self {
        Self::select((self > other) | self.nan(), self, other)
    }

    /// x · a + b, in one rounding if `FMA`.
    #[inline(always)]
    fn v_mul_add<const FMA: bool>(self, a: Self, b: Self) -> Self {
        self.fma::<FMA>(a, b)
    }

    /// `a` if the condition holds, else `b`; never a jump.
    #[inline(always)]
    fn v_select(condition: bool, a: Self, b: Self) -> Self {
        Self::select(condition, a, b)
    }
}

impl Math for f32 {
    const ANGLE_MAX: f32 = 100_000.0;
}

impl Math for f64 {
    const ANGLE_MAX: f64 = 1_048_576.0;
}
