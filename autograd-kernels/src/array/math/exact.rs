//! Slow versions of the functions, to some thirty digits, as references for the fast ones. A number
//! is the unevaluated sum of two f64 (106 bits; Dekker, "A floating-point technique for extending
//! the available precision", 1971) times its own power of two, so no step overflows. The functions
//! are power series after a reduction of the argument.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `(hi + lo) · 2^exponent`; `hi` is 0, or `1 <= |hi| < 2`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    hi: f64,
    lo: f64,
    exponent: i32,
}

/// `x` times any power of 2; exact unless the result is subnormal.
fn scaled(mut x: f64, mut power: i32) -> f64 {
    while power > 1000 {
        x *= 2f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 {
        x *= 2f64.powi(-1000);
        power += 1000;
    }
    x * 2f64.powi(power)
}

impl Exact {
    const ONE: Self = Self { hi: 1.0, lo: 0.0, exponent: 0 };

    pub(super) fn from(x: f64) -> Self {
        Self::new(x, 0.0, 0)
    }

    fn constant(parts: [f64; 3]) -> Self {
        parts.into_iter().rev().map(Self::from).reduce(|sum, part| part + sum).unwrap_or(Self::ONE)
    }

    fn ln_2() -> Self {
        let rest = [2.319_046_813_846_299_6e-17, 5.707_708_438_416_212e-34];
        Self::constant([std::f64::consts::LN_2, rest[0], rest[1]])
    }

    fn half_pi() -> Self {
        Self::constant(HALF_PI)
    }

    fn new(hi: f64, lo: f64, exponent: i32) -> Self {
        let (hi, lo) = two_sum(hi, lo);
        if hi == 0.0 {
            return Self { hi, lo, exponent: 0 };
        }
        assert!(hi.is_finite(), "the functions are asked for finite numbers");
        // A subnormal number has its exponent in its leading zeros.
        let (hi, lo, exponent) = match hi.abs() < f64::MIN_POSITIVE {
            true => (scaled(hi, 200), scaled(lo, 200), exponent - 200),
            false => (hi, lo, exponent),
        };
        let power = (hi.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        Self { hi: scaled(hi, -power), lo: scaled(lo, -power), exponent: exponent + power }
    }

    fn times_power(self, power: i32) -> Self {
        Self { exponent: self.exponent + power, ..self }
    }

    pub(super) fn near(self) -> f64 {
        scaled(self.hi, self.exponent)
    }

    fn is_zero(self) -> bool {
        self.hi == 0.0
    }

    pub(super) fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let odd = self.exponent.rem_euclid(2);
        let x = Self { exponent: odd, ..self };
        let mut root = Self::from(x.near().sqrt());
        // Newton's step doubles the digits.
        for _ in 0..2 {
            root = (root + x / root).times_power(-1);
        }
        root.times_power((self.exponent - odd) / 2)
    }

    /// Sums a series until its terms no longer count; `next` gets the previous term and its number.
    fn series(first: Self, mut next: impl FnMut(Self, f64) -> Self) -> Self {
        let (mut sum, mut term) = (first, first);
        for n in 1..1000 {
            term = next(term, f64::from(n));
            if term.is_zero() || term.exponent < sum.exponent - 120 {
                return sum;
            }
            sum = sum + term;
        }
        unreachable!("the series converge")
    }

    pub(super) fn exp(self) -> Self {
        let x = self.near();
        if x.abs() > 3000.0 {
            // Far out of range: any such power will do.
            let power = if x < 0.0 { -5000 } else { 5000 };
            return Self::ONE.times_power(power);
        }
        let k = (x / std::f64::consts::LN_2).round();
        let rest = self - Self::ln_2() * Self::from(k);
        (rest.small_exp_m1() + Self::ONE).times_power(k as i32)
    }

    fn small_exp_m1(self) -> Self {
        Self::series(self, |term, n| term * self / Self::from(n + 1.0))
    }

    pub(super) fn exp_m1(self) -> Self {
        if self.near().abs() < 0.5 { self.small_exp_m1() } else { self.exp() - Self::ONE }
    }

    /// `ln((1 + s) / (1 - s))`, for a small `s`.
    fn twice_atanh(self) -> Self {
        self.odd_series(1.0).times_power(1)
    }

    /// `s + s³/3 + s⁵/5 ..`; with alternating signs if `sign` is -1.
    fn odd_series(self, sign: f64) -> Self {
        let square = self * self * Self::from(sign);
        let mut power = self;
        Self::series(self, |_, n| {
            power = power * square;
            power / Self::from(2.0 * n + 1.0)
        })
    }

    /// A mantissa near 1, and the exponent of 2.
    fn split(self) -> (Self, i32) {
        let up = self.hi > std::f64::consts::SQRT_2;
        let exponent = if up { self.exponent + 1 } else { self.exponent };
        (Self { exponent: self.exponent - exponent, ..self }, exponent)
    }

    pub(super) fn ln(self) -> Self {
        let (m, power) = self.split();
        let of_mantissa = ((m - Self::ONE) / (m + Self::ONE)).twice_atanh();
        Self::ln_2() * Self::from(f64::from(power)) + of_mantissa
    }

    pub(super) fn log2(self) -> Self {
        let (m, power) = self.split();
        m.ln() / Self::ln_2() + Self::from(f64::from(power))
    }

    pub(super) fn log10(self) -> Self {
        self.ln() / Self::from(10.0).ln()
    }

    pub(super) fn ln_1p(self) -> Self {
        match self.near().abs() < 0.3 {
            true => (self / (self + Self::from(2.0))).twice_atanh(),
            false => (self + Self::ONE).ln(),
        }
    }

    pub(super) fn sinh(self) -> Self {
        if self.near().abs() > 0.5 {
            return (self.exp() - (-self).exp()).times_power(-1);
        }
        let grown = self.exp_m1();
        (grown + grown / (grown + Self::ONE)).times_power(-1)
    }

    pub(super) fn cosh(self) -> Self {
        (self.exp() + (-self).exp()).times_power(-1)
    }

    pub(super) fn tanh(self) -> Self {
        if self.near().abs() > 60.0 {
            return Self::from(self.near().signum());
        }
        let grown = self.times_power(1).exp_m1();
        grown / (grown + Self::from(2.0))
    }

    pub(super) fn sigmoid(self) -> Self {
        match self.near() < 0.0 {
            true => self.exp() / (self.exp() + Self::ONE),
            false => Self::ONE / ((-self).exp() + Self::ONE),
        }
    }

    pub(super) fn softplus(self) -> Self {
        match self.near() < 0.0 {
            true => self.exp().ln_1p(),
            false => self + (-self).exp().ln_1p(),
        }
    }

    /// Abramowitz and Stegun, 7.1.6: all terms are of one sign.
    pub(super) fn erf(self) -> Self {
        if self.near().abs() > 8.0 {
            return Self::from(self.near().signum());
        }
        let square = self * self;
        let twice = square.times_power(1);
        let sum = Self::series(self, |term, n| term * twice / Self::from(2.0 * n + 1.0));
        let pi = Self::half_pi().times_power(1);
        (sum * (-square).exp()).times_power(1) / pi.sqrt()
    }

    /// A step of Newton from the result to f64's precision.
    pub(super) fn erfinv(self) -> Self {
        let near = Self::from(pxfm::f_erfinv(self.near()));
        let slope = (near * near).exp() * Self::half_pi().times_power(1).sqrt().times_power(-1);
        near - (near.erf() - self) * slope
    }

    /// The distance from the nearest integer.
    fn less_integer(self) -> Self {
        self - Self::from(self.near().round())
    }

    /// The series of Stirling, as a difference to that at a zero: a result near 0 keeps its digits.
    pub(super) fn lgamma(self) -> Self {
        let x = self.near();
        if x < 0.0 {
            let pi = Self::half_pi().times_power(1);
            let sine = (pi * self.less_integer()).sin();
            return ((pi * pi) / (sine * sine)).ln().times_power(-1) - (Self::ONE - self).lgamma();
        }
        if x < 0.5 {
            return (self + Self::ONE).lgamma() - self.ln();
        }
        let zero = if x < 1.5 { 1.0 } else { 2.0 };
        let t = self - Self::from(zero);
        // The product of all (x + k) / (zero + k), less 1.
        let mut grown = Self::from(0.0);
        for k in 0..SHIFT {
            let part = t / Self::from(zero + f64::from(k));
            grown = grown + part + grown * part;
        }
        let (far, base) = (self + Self::from(SHIFT.into()), Self::from(zero + f64::from(SHIFT)));
        let head = (far - Self::from(0.5)) * (t / base).ln_1p() + t * (base.ln() - Self::ONE);
        let (u, v) = (Self::ONE / far, Self::ONE / base);
        let apart = -(t * u * v);
        let squares = apart * (u + v);
        // The difference of the powers 2k - 1.
        let (mut power, mut difference) = (v, apart);
        let mut sum = head - grown.ln_1p();
        for (k, b) in (1u8..).zip(BERNOULLI) {
            let k = f64::from(2 * k);
            sum = sum + difference * Self::bernoulli(b) / Self::from(k * (k - 1.0));
            difference = u * u * difference + power * squares;
            power = power * v * v;
        }
        sum
    }

    /// As [`lgamma`](Self::lgamma), the difference to the value at the positive root.
    pub(super) fn digamma(self) -> Self {
        if self.near() < 0.0 {
            let pi = Self::half_pi().times_power(1);
            let angle = pi * self.less_integer();
            return (Self::ONE - self).digamma() - pi * angle.cos() / angle.sin();
        }
        let root = Self::constant(DIGAMMA_ROOT);
        let t = DIGAMMA_ROOT.into_iter().fold(self, |rest, part| rest - Self::from(part));
        let mut sum = Self::from(0.0);
        for k in 0..SHIFT {
            let k = Self::from(k.into());
            sum = sum + Self::ONE / ((self + k) * (root + k));
        }
        let shift = Self::from(SHIFT.into());
        let (u, v) = (Self::ONE / (self + shift), Self::ONE / (root + shift));
        let mut sum = t * (sum + (u * v).times_power(-1)) + (t * v).ln_1p();
        let squares = -(t * u * v) * (u + v);
        let (mut power, mut difference) = (v * v, squares);
        for (k, b) in (1u8..).zip(BERNOULLI) {
            sum = sum - difference * Self::bernoulli(b) / Self::from(f64::from(2 * k));
            difference = u * u * difference + power * squares;
            power = power * v * v;
        }
        sum
    }

    fn bernoulli([top, bottom]: [f64; 2]) -> Self {
        Self::from(top) / Self::from(bottom)
    }

    /// The angle minus the nearest multiple of π/2, and the number of that multiple.
    fn quadrant(self) -> (Self, i64) {
        let k = (self.near() / std::f64::consts::FRAC_PI_2).round();
        let less = |rest: Self, part| rest - Self::from(k) * Self::from(part);
        (HALF_PI.into_iter().fold(self, less), k as i64)
    }

    fn small_sin(self) -> Self {
        let square = -(self * self);
        Self::series(self, |term, n| term * square / Self::from(2.0 * n * (2.0 * n + 1.0)))
    }

    fn small_cos(self) -> Self {
        let square = -(self * self);
        Self::series(Self::ONE, |term, n| term * square / Self::from(2.0 * n * (2.0 * n - 1.0)))
    }

    /// The sine of the angle plus `quarters` quarter turns.
    fn sin_after(self, quarters: i64) -> Self {
        let (rest, k) = self.quadrant();
        match (k + quarters).rem_euclid(4) {
            0 => rest.small_sin(),
            1 => rest.small_cos(),
            2 => -rest.small_sin(),
            _ => -rest.small_cos(),
        }
    }

    pub(super) fn sin(self) -> Self {
        self.sin_after(0)
    }

    pub(super) fn cos(self) -> Self {
        self.sin_after(1)
    }

    pub(super) fn tan(self) -> Self {
        self.sin() / self.cos()
    }

    pub(super) fn atan(self) -> Self {
        let x = self.near();
        if x.abs() > 1.0 {
            let quarter = Self::half_pi() * Self::from(x.signum());
            return quarter - (Self::ONE / self).atan();
        }
        if x.abs() > 0.2 {
            let root = (Self::ONE + self * self).sqrt();
            return (self / (Self::ONE + root)).atan().times_power(1);
        }
        self.odd_series(-1.0)
    }

    pub(super) fn asin(self) -> Self {
        let cosine = ((Self::ONE - self) * (Self::ONE + self)).sqrt();
        match cosine.is_zero() {
            true => self * Self::half_pi(),
            false => (self / cosine).atan(),
        }
    }

    pub(super) fn acos(self) -> Self {
        match (Self::ONE + self).is_zero() {
            true => Self::half_pi().times_power(1),
            false => ((Self::ONE - self) / (Self::ONE + self)).sqrt().atan().times_power(1),
        }
    }

    pub(super) fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }

    pub(super) fn pow(self, power: Self) -> Self {
        (self.ln() * power).exp()
    }

    /// The distance of an f64 from this number, in units in the last place of this number; ∞ counts
    /// as the next number above the largest.
    pub(super) fn distance(self, found: f64) -> f64 {
        let unit = self.exponent.clamp(-1022, 1023) - 52;
        let limit = Self::ONE.times_power(1024);
        let found = match found.is_infinite() {
            true => limit * Self::from(found.signum()),
            false => Self::from(found),
        };
        let this = match self.exponent >= 1024 {
            true => limit * Self::from(self.hi.signum()),
            false => self,
        };
        (found - this).times_power(-unit).near().abs()
    }
}

const HALF_PI: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// The steps after which a series with [`BERNOULLI`] has all digits.
const SHIFT: i32 = 30;

/// Bernoulli's numbers B₂, B₄, .. as fractions.
const BERNOULLI: [[f64; 2]; 13] = [
    [1.0, 6.0],
    [-1.0, 30.0],
    [1.0, 42.0],
    [-1.0, 30.0],
    [5.0, 66.0],
    [-691.0, 2730.0],
    [7.0, 6.0],
    [-3617.0, 510.0],
    [43867.0, 798.0],
    [-174_611.0, 330.0],
    [854_513.0, 138.0],
    [-236_364_091.0, 2730.0],
    [8_553_103.0, 6.0],
];

/// The positive root of digamma.
const DIGAMMA_ROOT: [f64; 3] =
    [1.461_632_144_968_362_2, 9.549_995_429_965_697e-17, 2.893_929_928_204_15e-33];

/// The sum and its rounding error (Knuth).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl Neg for Exact {
    type Output = Self;

    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo, ..self }
    }
}

impl Add for Exact {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let first = !self.is_zero() && self.exponent >= other.exponent;
        let (a, b) = if first || other.is_zero() { (self, other) } else { (other, self) };
        let shift = b.exponent - a.exponent;
        if b.is_zero() || shift < -300 {
            return a;
        }
        let (high, mut low) = two_sum(a.hi, scaled(b.hi, shift));
        let (middle, rest) = two_sum(a.lo, scaled(b.lo, shift));
        low += middle;
        let (high, low) = two_sum(high, low);
        Self::new(high, low + rest, a.exponent)
    }
}

impl Sub for Exact {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Exact {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let high = self.hi * other.hi;
        let rest = self.hi.mul_add(other.hi, -high);
        let low = rest + (self.hi * other.lo + self.lo * other.hi);
        Self::new(high, low, self.exponent + other.exponent)
    }
}

impl Div for Exact {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let exponent = self.exponent - other.exponent;
        let (a, b) = (Self { exponent: 0, ..self }, Self { exponent: 0, ..other });
        let first = Self::from(a.hi / b.hi);
        let second = a - b * first;
        let second = Self::from(second.near() / b.hi);
        let third = a - b * first - b * second;
        (first + second + Self::from(third.near() / b.hi)).times_power(exponent)
    }
}

#[test]
fn its_digits_are_right() {
    /// Each number, the function of it, and the result in two parts.
    macro_rules! known {
        ($($x:literal $function:ident $(($y:literal))? => $high:literal $low:literal;)*) => {$(
            let found = Exact::from($x).$function($(Exact::from($y))?);
            let right = Exact::from($high) + Exact::from($low);
            let off = ((found - right) / right).near().abs();
            assert!(off < 2f64.powi(-98), "{} of {}: {off:e}", stringify!($function), $x);
        )*};
    }
    // To 40 digits, computed by another program.
    known! {
        -500.25 exp => 5.548_625_684_622_169e-218 1.140_533_889_385_110_9e-235;
        1e-9 exp_m1 => 1.000_000_000_500_000_1e-09 -7.443_897_403_844_588e-26;
        -0.75 exp_m1 => -0.527_633_447_258_985_3 1.798_400_443_437_321_4e-17;
        3e100 ln => 231.357_121_588_072_7 -8.746_496_254_226_76e-15;
        0.999 ln => -0.001_000_500_333_583_534_4 -2.564_477_700_367_779_8e-20;
        -1e-7 ln_1p => -1.000_000_050_000_003_3e-07 2.441_465_967_239_83e-24;
        11.0 log2 => 3.459_431_618_637_297_3 -5.589_168_706_985_233e-17;
        0.02 log10 => -1.698_970_004_336_018_7 -4.927_430_936_010_593e-17;
        0.3 tanh => 0.291_312_612_451_590_9 -6.460_265_658_646_958_6e-18;
        1e-20 tanh => 1e-20 -3.333_333_333_333_333e-61;
        -30.0 sigmoid => 9.357_622_968_839_299e-14 8.837_142_511_495_094e-31;
        -5.0 softplus => 0.006_715_348_489_118_068 1.962_161_297_662_602e-19;
        0.7 erf => 0.677_801_193_837_418_4 5.860_416_063_065_593e-18;
        5.5 erf => 0.999_999_999_999_992_7 -3.037_595_544_836_49e-17;
        0.7 erfinv => 0.732_869_077_959_216_7 4.340_965_697_571_891e-17;
        -1e-5 erfinv => -8.862_269_254_759_594e-6 -4.673_122_464_938_58e-22;
        1.4616 digamma => -3.110_625_123_034_165e-5 -1.323_479_969_151_057_4e-21;
        1e-9 digamma => -1_000_000_000.577_215_6 -4.864_499_024_733_674e-8;
        -7.3 digamma => 4.337_307_305_510_05 -2.830_149_844_668_254e-17;
        1e6 digamma => 13.815_510_057_964_191 -6.330_374_222_031_517e-16;
        1.000_000_001 lgamma => -5.772_157_118_381_039e-10 -4.721_266_682_393_922e-26;
        1.9999 lgamma => -4.227_520_877_215_346e-5 1.262_109_724_855_178_3e-21;
        0.1 lgamma => 2.252_712_651_734_206 -8.214_908_571_963_665e-17;
        -20.7 lgamma => -43.105_133_189_536_225 1.351_300_478_133_473_8e-15;
        1e10 lgamma => 220_258_509_288.810_58 4.077_463_798_123_46e-6;
        1e6 sin => -0.349_993_502_171_292_94 -1.595_284_880_932_396_8e-17;
        355.0 cos => -0.999_999_999_545_659 1.057_461_284_664_352_1e-17;
        355.0 sin => -3.014_435_335_948_845e-05 1.301_264_399_104_634_7e-21;
        1.5 tan => 14.101_419_947_171_719 6.270_315_165_067_482e-16;
        0.9 atan => 0.732_815_101_786_506_6 5.305_680_890_798_25e-17;
        -40.0 atan => -1.545_801_533_175_976_5 1.280_177_496_946_934_3e-18;
        0.99999 asin => 1.566_324_187_113_118_8 4.195_750_215_483_99e-17;
        -0.3 acos => 1.875_488_980_810_294_1 -2.174_855_132_504_718_3e-17;
        0.999_999_9 acos => 0.000_447_213_599_109_041_26 -1.883_034_288_214_827_2e-20;
        1e-5 sinh => 1.000_000_000_016_666_8e-05 -6.182_319_396_196_156e-22;
        20.0 cosh => 242_582_597.704_895_14 1.274_590_675_708_799_1e-09;
        3.0 rsqrt => 0.577_350_269_189_625_7 3.345_028_073_935_634_5e-17;
        1.7 pow(300.3) => 1.598_862_401_623_249_5e+69 8.484_550_299_292_943e+52;
    }
}
