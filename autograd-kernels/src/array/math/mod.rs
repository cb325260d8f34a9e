//! Elementary functions of `f32` and `f64` as straight-line code: no branch, call or look-up. A
//! loop over a slice inside a [`Kernel`](super::simd::Kernel) becomes vector code of the level's
//! width. The table of [`functions`](crate::formula) states the largest error of each function but
//! pow, in units in the last place (ulp) of the exact result, at any level; the tests check it. For
//! f64 they check some 30,000 inputs against thirty digits (`exact`): a third have random bits, the
//! others are around 0, 1, multiples of π/2 and the points where formulas change. For f32 they
//! check four million inputs; `every_f32` checks all. All levels with a fused multiply-add give the
//! same bits; others may differ in the last bit or two. NaN gives NaN, odd functions keep the sign
//! of zero, and subnormal arguments and results are as accurate as others.

#[cfg(test)]
mod exact;
mod f32;
mod f64;
mod gamma;
pub mod of_two;
mod steps;
mod tables;
#[cfg(test)]
mod tests;

use num_traits::Float;

pub use steps::select;
use tables::tables;

/// A function of one or two operands that costs no more than reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cheap {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Neg,
    Square,
    /// `x`, or 0 if `x < 0`.
    Relu,
    /// The gradient of a square, from its input and its gradient.
    SquareGrad,
    /// The gradient of `relu`, from its output and its gradient.
    ReluGrad,
}

/// The functions, described in the [table](crate::formula). `FMA` is that of
/// [`Kernel::run`](super::simd::Kernel::run).
pub trait Math: Float + 'static {
    tables!(declared);

    /// 1.5 · 2^mantissa bits: adding it leaves the nearest integer in the low bits.
    const MAGIC: Self;
    /// `MAGIC` plus the bias of an exponent.
    const BIASED: Self;
    /// 2^mantissa bits: from here on every value is an integer.
    const INTEGERS: Self;

    fn lit(value: f64) -> Self;
    fn wide(self) -> f64;
    /// self · b + c, in one rounding if `FMA`.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// self · b - product exactly, `product` being self · b rounded; without a fused multiply-add.
    fn product_lost(self, b: Self, product: Self) -> Self;
    /// With n = self - MAGIC: 2ⁿ, for n that give a normal number.
    fn pow2(self) -> Self;
    /// With n = self - BIASED: 2ⁿ, with one addition less.
    fn biased_pow2(self) -> Self;
    /// With n = self - MAGIC: two normal factors of 2^(n + shift), for n whose power is not normal.
    fn pow2_halves(self, shift: i32) -> (Self, Self);
    /// Whether n = self - MAGIC is odd.
    fn odd(self) -> bool;
    /// With n = t - MAGIC: self negated if n mod 4 is 2 or 3.
    fn flip(self, t: Self) -> Self;
    /// self = 2^e (1 + f) with √½ ≤ 1 + f < √2, for self > 0; gives (e, f).
    fn split(self) -> (Self, Self);
    /// As `split`, for normal numbers; also 2^-e if e is not the largest exponent.
    fn split_normal(self) -> (Self, Self, Self);
    /// x = n π/2 + r + low without a fused multiply-add; gives (n + MAGIC, r, low).
    fn quadrant_plain(self) -> (Self, Self, Self);
    /// ln(1 + f) - f on √½ - 1 ≤ f ≤ √2 - 1.
    fn ln_1p_tail<const FMA: bool>(f: Self) -> Self;
    /// x^y for x ≥ 0.
    fn pow_magnitude<const FMA: bool>(x: Self, y: Self) -> Self;

    /// The nearest integer; ties go to the even one.
    fn to_even(self) -> Self;

    #[inline(always)]
    fn v_exp<const FMA: bool>(self) -> Self {
        exp_scaled::<Self, FMA>(self, 0, Self::EXP_MAX)
    }

    #[inline(always)]
    fn v_exp_m1<const FMA: bool>(self) -> Self {
        let (one, half) = (Self::lit(1.0), Self::lit(0.5));
        let x = clamp(self, Self::EXP_M1_MIN, Self::EXP_M1_MAX);
        // n stays 0 beyond ln2 / 2, where rounding gives ±1: just above it, 2p + 1 would cancel.
        let t = x.fma::<FMA>(Self::LOG2_E, Self::MAGIC);
        let near = x.abs() < half;
        let t = select(near, Self::MAGIC, t);
        let r = remainder::<Self, FMA>(x, Self::MAGIC - t);
        let p = (r * r).fma::<FMA>(poly::<Self, FMA>(r, Self::EXP_M1), r);
        // Computes half of the result: 2^n itself may be out of range.
        let scale = (t - one).pow2();
        let y = p.fma::<FMA>(scale, scale - half);
        select(near, p, y + y).copysign(self)
    }

    #[inline(always)]
    fn v_ln<const FMA: bool>(self) -> Self {
        let (e, f, tail) = ln_parts::<Self, FMA>(self);
        let low = e.fma::<FMA>(Self::LN2_LO, tail);
        ln_edges(self, e.fma::<FMA>(Self::LN2_HI, f + low))
    }

    #[inline(always)]
    fn v_ln_1p<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let u = one + self;
        let (e, f, inverse) = u.split_normal();
        // Where 1 + x needs no scaling, f is x itself. Elsewhere the rounding error of 1 + x is added
        // back, times the derivative 1 / (1 + f), which may be rough.
        let near = e == zero;
        let lost = select(near | (u > Self::INTEGERS), zero, (self - (u - one)) * inverse);
        let f = select(near, self, f);
        let slope = f.fma::<FMA>(f.fma::<FMA>(Self::lit(0.84), Self::lit(-0.95)), one);
        let tail = slope.fma::<FMA>(lost, Self::ln_1p_tail::<FMA>(f));
        let low = e.fma::<FMA>(Self::LN2_LO, tail);
        ln_edges(u, e.fma::<FMA>(Self::LN2_HI, f + low)).copysign(self)
    }

    #[inline(always)]
    fn v_log2<const FMA: bool>(self) -> Self {
        log_base::<Self, FMA>(
            self,
            [Self::LOG2_E, Self::LOG2_E_LO],
            [Self::lit(1.0), Self::lit(0.0)],
        )
    }

    #[inline(always)]
    fn v_log10<const FMA: bool>(self) -> Self {
        log_base::<Self, FMA>(
            self,
            [Self::LOG10_E, Self::LOG10_E_LO],
            [Self::LOG10_2_HI, Self::LOG10_2_LO],
        )
    }

    #[inline(always)]
    fn v_tanh<const FMA: bool>(self) -> Self {
        let (one, half) = (Self::lit(1.0), Self::lit(0.5));
        let a = self.abs();
        // a - a³ / D(a²) near 0, else 1 - 1 / (½ e^2a + ½): one division serves both.
        let small = a < Self::TANH_SPLIT;
        let base = select(small, a, one);
        let square = base * base;
        let near = poly::<Self, FMA>(square, Self::TANH);
        // e^2a = 2ⁿ 2^r. The result no longer depends on an error of r long before 2a log₂ e is so
        // large that the rounding of the constant matters.
        let limited = select(a > Self::TANH_MAX, Self::TANH_MAX, a);
        let scaled = Self::LOG2_E + Self::LOG2_E;
        let t = limited.fma::<FMA>(scaled, Self::BIASED);
        let minus_n = Self::BIASED - t;
        let r = match FMA {
            true => limited.fma::<FMA>(scaled, minus_n),
            false => remainder::<Self, FMA>(limited + limited, minus_n) * Self::LOG2_E,
        };
        let power = match *Self::EXP2 {
            // At this degree, Horner's rule takes fewer instructions.
            [a, b, c, d, e, f] => {
                [e, d, c, b, a].into_iter().fold(f, |sum, c| sum.fma::<FMA>(r, c))
            }
            _ => poly::<Self, FMA>(r, Self::EXP2),
        };
        let far = r.fma::<FMA>(power, half).fma::<FMA>(t.biased_pow2(), half);
        let quotient = square / select(small, near, far);
        (-base).fma::<FMA>(quotient, base).copysign(self)
    }

    #[inline(always)]
    fn v_sigmoid<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let a = self.abs();
        let (t, r) = reduce::<Self, FMA>(select(a > -Self::EXP_MIN, -Self::EXP_MIN, a));
        let p = exp_m1_near_0::<Self, FMA>(r);
        // 1 + e^|x| is scaled by TINY, so that e^|x| stays in range where its inverse is subnormal.
        let scale = (t + Self::TINY_EXPONENT).pow2();
        let d = p.fma::<FMA>(scale, scale + Self::TINY);
        // Adds back the rounding error of d, times the derivative of 1 / d.
        let lost = p.fma::<FMA>(scale, scale - d) + Self::TINY;
        let inverse = one / d;
        let below = (-inverse).fma::<FMA>(inverse * lost, inverse) * Self::TINY;
        select(self < zero, below, one - below)
    }

    #[inline(always)]
    fn v_softplus<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let z = exp_scaled::<Self, FMA>(-self.abs(), 0, zero);
        // ln(1 + z), with 1 + z halved from √2 on.
        let halved = z > Self::lit(0.41421356);
        let f = select(halved, (z - one) * Self::lit(0.5), z);
        let low = Self::ln_1p_tail::<FMA>(f) + select(halved, Self::LN2_LO, zero);
        let ln = (f + low) + select(halved, Self::LN2_HI, zero);
        select(self > zero, self, zero) + ln
    }

    #[inline(always)]
    fn v_erf<const FMA: bool>(self) -> Self {
        let one = Self::lit(1.0);
        let a = self.abs();
        let near = a.fma::<FMA>(poly::<Self, FMA>(a * a, Self::ERF), a);
        let limited = select(a > Self::ERF_MAX, Self::ERF_MAX, a);
        let (t, r) = reduce::<Self, FMA>(-poly::<Self, FMA>(limited, Self::ERFC));
        let scale = t.pow2();
        let far = (-exp_m1_near_0::<Self, FMA>(r)).fma::<FMA>(scale, one - scale);
        select(a < Self::ERF_SPLIT, near, far).copysign(self)
    }

    #[inline(always)]
    fn v_erfinv<const FMA: bool>(self) -> Self {
        Self::lit(gamma::erfinv::<FMA>(self.wide()))
    }

    #[inline(always)]
    fn v_digamma<const FMA: bool>(self) -> Self {
        Self::lit(gamma::digamma::<FMA>(self.wide()))
    }

    #[inline(always)]
    fn v_lgamma<const FMA: bool>(self) -> Self {
        Self::lit(gamma::lgamma::<FMA>(self.wide()))
    }

    /// sin x; as cos x and tan x, NaN beyond [`ANGLE_MAX`], where callers use std's function.
    #[inline(always)]
    fn v_sin<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let (sin, cos) = (sin_near_0::<Self, FMA>(r, low), cos_near_0::<Self, FMA>(r, low));
        in_range(self, select(t.odd(), cos, sin).flip(t))
    }

    #[inline(always)]
    fn v_cos<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let (sin, cos) = (sin_near_0::<Self, FMA>(r, low), cos_near_0::<Self, FMA>(r, low));
        let y = select(t.odd(), sin, cos).flip(t + Self::lit(1.0));
        select(self.abs() > Self::lit(ANGLE_MAX), Self::nan(), y)
    }

    #[inline(always)]
    fn v_tan<const FMA: bool>(self) -> Self {
        let (t, r, low) = quadrant::<Self, FMA>(self);
        let square = r * r;
        let rest = (r * square)
            .fma::<FMA>(poly::<Self, FMA>(square, Self::TAN), low.fma::<FMA>(square, low));
        let tan = r + rest;
        // Corrects the reciprocal for the rounding of the sum and, with FMA, for its own.
        let below = rest - (tan - r);
        let y = Self::lit(-1.0) / tan;
        let off = if FMA { y.fma::<FMA>(tan, Self::lit(1.0)) } else { Self::lit(0.0) };
        let y = y.fma::<FMA>(y.fma::<FMA>(below, off), y);
        in_range(self, select(t.odd(), y, tan))
    }

    #[inline(always)]
    fn v_atan<const FMA: bool>(self) -> Self {
        let one = Self::lit(1.0);
        let a = self.abs();
        let far = a > one;
        let (t, tail) = Self::atan_parts::<FMA>(select(far, one, a) / select(far, a, one));
        let [hi, lo, _] = Self::HALF_PI;
        select(far, (hi - t) + (lo - tail), t + tail).copysign(self)
    }

    /// atan t for 0 ≤ t ≤ 1, as t and the rest.
    #[inline(always)]
    fn atan_parts<const FMA: bool>(t: Self) -> (Self, Self) {
        let square = t * t;
        (t, t * square * poly::<Self, FMA>(square, Self::ATAN))
    }

    #[inline(always)]
    fn v_asin<const FMA: bool>(self) -> Self {
        let a = self.abs();
        let far = a > Self::lit(0.5);
        let (t, tail) = asin_parts::<Self, FMA>(a, far);
        let [hi, lo, _] = Self::HALF_PI;
        select(far, hi - ((t + t) + ((tail + tail) - lo)), t + tail).copysign(self)
    }

    #[inline(always)]
    fn v_acos<const FMA: bool>(self) -> Self {
        let a = self.abs();
        let far = a > Self::lit(0.5);
        let (t, tail) = asin_parts::<Self, FMA>(a, far);
        let [hi, lo, _] = Self::HALF_PI;
        let twice = (t + tail) + (t + tail);
        let left = Self::PI_HI - (twice - Self::PI_LO);
        let middle = hi - (self - (lo - tail.copysign(self)));
        select(far, select(self < Self::lit(0.0), left, twice), middle)
    }

    #[inline(always)]
    fn v_sinh<const FMA: bool>(self) -> Self {
        let a = self.abs();
        let square = a * a;
        let near = (a * square).fma::<FMA>(poly::<Self, FMA>(square, Self::SINH), a);
        let half = exp_scaled::<Self, FMA>(a, -1, Self::SINH_MAX);
        let far = half - Self::lit(0.25) / half;
        select(a < Self::lit(1.0), near, far).copysign(self)
    }

    #[inline(always)]
    fn v_cosh<const FMA: bool>(self) -> Self {
        let half = exp_scaled::<Self, FMA>(self.abs(), -1, Self::SINH_MAX);
        half + Self::lit(0.25) / half
    }

    /// x^y with the special cases of `powf`: x⁰ = 1^y = 1; a negative x needs an integer y.
    /// Error: f32 0.54, f64 0.92.
    #[inline(always)]
    fn v_pow<const FMA: bool>(self, y: Self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        let a = self.abs();
        let power = Self::pow_magnitude::<FMA>(a, y);
        let power = select((a == one) | (y == zero), one, power);
        let whole = integer(y);
        let odd = whole & !integer(y * Self::lit(0.5));
        let power = select(odd, power.copysign(self), power);
        // Infinite exponents count as integers, and -∞ has all powers, as ∞ has.
        let undefined = (self < zero) & (a < Self::infinity()) & !whole;
        select(undefined, Self::nan(), power)
    }

    #[inline(always)]
    fn v_sqrt<const FMA: bool>(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn v_rsqrt<const FMA: bool>(self) -> Self {
        Self::lit(1.0) / self.sqrt()
    }

    #[inline(always)]
    fn v_recip<const FMA: bool>(self) -> Self {
        Self::lit(1.0) / self
    }

    #[inline(always)]
    fn v_abs<const FMA: bool>(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn v_floor<const FMA: bool>(self) -> Self {
        if FMA {
            return self.floor();
        }
        let near = self.v_round::<FMA>();
        select(near > self, near - Self::lit(1.0), near).copysign(self)
    }

    #[inline(always)]
    fn v_ceil<const FMA: bool>(self) -> Self {
        if FMA {
            return self.ceil();
        }
        let near = self.v_round::<FMA>();
        select(near < self, near + Self::lit(1.0), near).copysign(self)
    }

    #[inline(always)]
    fn v_round<const FMA: bool>(self) -> Self {
        if FMA {
            return self.to_even();
        }
        // Baselines without FMA have no rounding instruction either.
        let a = self.abs();
        let near = ((a + Self::INTEGERS) - Self::INTEGERS).copysign(self);
        select(a < Self::INTEGERS, near, self)
    }

    #[inline(always)]
    fn v_trunc<const FMA: bool>(self) -> Self {
        if FMA {
            return self.trunc();
        }
        self.abs().v_floor::<FMA>().copysign(self)
    }

    #[inline(always)]
    fn v_signum<const FMA: bool>(self) -> Self {
        let (zero, one) = (Self::lit(0.0), Self::lit(1.0));
        select(self > zero, one, select(self < zero, -one, self))
    }

    /// The smaller operand; as [`v_max`](Self::v_max), NaN if either is NaN.
    #[inline(always)]
    fn v_min<const FMA: bool>(self, other: Self) -> Self {
        select((self < other) | self.is_nan(), self, other)
    }

    #[inline(always)]
    fn v_max<const FMA: bool>(self, other: Self) -> Self {
        select((self > other) | self.is_nan(), self, other)
    }
}

/// The largest |x| that [`Math::v_sin`], [`Math::v_cos`] and [`Math::v_tan`] take: 2²⁰.
pub const ANGLE_MAX: f64 = 1_048_576.0;

/// The polynomial with coefficients `c`, a constant table, so that the loop is unrolled and the loads
/// are folded. Evaluated in powers of x², or x⁴ if it is long: the chain of dependent operations limits
/// these loops.
#[inline(always)]
fn poly<T: Math, const FMA: bool>(x: T, c: &[T]) -> T {
    if let [a, b, c] = *c {
        return c.fma::<FMA>(x, b).fma::<FMA>(x, a);
    }
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

#[inline(always)]
fn group<T: Math, const FMA: bool>(x: T, square: T, c: &[T]) -> T {
    match *c {
        [a, b] => b.fma::<FMA>(x, a),
        [a, b, c] => c.fma::<FMA>(square, b.fma::<FMA>(x, a)),
        [a, b, c, d] => d.fma::<FMA>(x, c).fma::<FMA>(square, b.fma::<FMA>(x, a)),
        _ => c[0],
    }
}

/// x = n ln2 + r with |r| ≤ ln2 / 2; gives (n + MAGIC, r).
#[inline(always)]
fn reduce<T: Math, const FMA: bool>(x: T) -> (T, T) {
    let t = x.fma::<FMA>(T::LOG2_E, T::MAGIC);
    (t, remainder::<T, FMA>(x, T::MAGIC - t))
}

/// x - n ln2.
#[inline(always)]
fn remainder<T: Math, const FMA: bool>(x: T, minus_n: T) -> T {
    minus_n.fma::<FMA>(T::LN2_LO, minus_n.fma::<FMA>(T::LN2_HI, x))
}

/// e^r - 1 on |r| ≤ ln2 / 2.
#[inline(always)]
fn exp_m1_near_0<T: Math, const FMA: bool>(r: T) -> T {
    (r * r).fma::<FMA>(poly::<T, FMA>(r, T::EXP), r)
}

/// x limited to lo..=hi; NaN stays.
#[inline(always)]
fn clamp<T: Math>(x: T, lo: T, hi: T) -> T {
    let x = select(x < lo, lo, x);
    select(x > hi, hi, x)
}

/// e^x · 2^shift, subnormal results and ∞ included.
#[inline(always)]
fn exp_scaled<T: Math, const FMA: bool>(x: T, shift: i32, max: T) -> T {
    let (t, r) = reduce::<T, FMA>(clamp(x, T::EXP_MIN, max));
    let (a, b) = t.pow2_halves(shift);
    (T::lit(1.0) + exp_m1_near_0::<T, FMA>(r)) * a * b
}

/// (e, f, tail) with ln x = e ln2 + f + tail.
#[inline(always)]
fn ln_parts<T: Math, const FMA: bool>(x: T) -> (T, T, T) {
    let (e, f) = x.split();
    (e, f, T::ln_1p_tail::<FMA>(f))
}

/// `y`, except where x is 0, negative, ∞ or NaN.
#[inline(always)]
fn ln_edges<T: Math>(x: T, y: T) -> T {
    let zero = T::lit(0.0);
    let edge = select(x == zero, -T::infinity(), T::nan());
    select(x == T::infinity(), x, select(x > zero, y, edge))
}

/// log of another base b, from log_b e and log_b 2.
#[inline(always)]
fn log_base<T: Math, const FMA: bool>(x: T, of_e: [T; 2], of_2: [T; 2]) -> T {
    let (e, f, tail) = ln_parts::<T, FMA>(x);
    let low = tail.fma::<FMA>(of_e[0], f.fma::<FMA>(of_e[1], e * of_2[1]));
    if FMA {
        return ln_edges(x, e.fma::<FMA>(of_2[0], f.fma::<FMA>(of_e[0], low)));
    }
    // The rounding of the product is most of the error.
    let product = f * of_e[0];
    let lost = f.product_lost(of_e[0], product);
    ln_edges(x, e * of_2[0] + (product + (low + lost)))
}

/// x = n π/2 + r + low with |r| ≤ π/4; gives (n + MAGIC, r, low).
#[inline(always)]
fn quadrant<T: Math, const FMA: bool>(x: T) -> (T, T, T) {
    if !FMA {
        return x.quadrant_plain();
    }
    let [a, b, c] = T::HALF_PI;
    let t = x.fma::<FMA>(T::TWO_OVER_PI, T::MAGIC);
    let n = T::MAGIC - t;
    // The first difference is exact. The second may cancel too, next to a multiple of π/2, so its
    // product is kept unrounded.
    let first = n.fma::<FMA>(a, x);
    let part = n * b;
    let r = first + part;
    let lost = ((first - r) + part) + n.fma::<FMA>(b, -part);
    (t, r, n.fma::<FMA>(c, lost))
}

/// `y`, an odd function of the angle x, except where x is 0 or too large.
#[inline(always)]
fn in_range<T: Math>(x: T, y: T) -> T {
    let y = select(x == T::lit(0.0), x, y);
    select(x.abs() > T::lit(ANGLE_MAX), T::nan(), y)
}

#[inline(always)]
fn sin_near_0<T: Math, const FMA: bool>(r: T, low: T) -> T {
    let square = r * r;
    r + (r * square).fma::<FMA>(poly::<T, FMA>(square, T::SIN), low)
}

#[inline(always)]
fn cos_near_0<T: Math, const FMA: bool>(r: T, low: T) -> T {
    let square = r * r;
    let half = T::lit(0.5) * square;
    let head = T::lit(1.0) - half;
    let rest = (T::lit(1.0) - head) - half;
    head + (square * square).fma::<FMA>(poly::<T, FMA>(square, T::COS), (-r).fma::<FMA>(low, rest))
}

/// (t, tail) with asin |x| = t + tail, or 2 (t + tail) = acos |x| where |x| > 1/2.
#[inline(always)]
fn asin_parts<T: Math, const FMA: bool>(a: T, far: bool) -> (T, T) {
    let half = T::lit(0.5);
    let square = select(far, (-half).fma::<FMA>(a, half), a * a);
    let t = select(far, square.sqrt(), a);
    (t, t * square * poly::<T, FMA>(square, T::ASIN))
}

#[inline(always)]
fn integer<T: Math>(x: T) -> bool {
    let a = x.abs();
    (a >= T::INTEGERS) | ((a + T::INTEGERS) - T::INTEGERS == a)
}
