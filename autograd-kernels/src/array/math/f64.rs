//! Steps of `f64`.

use super::steps::{bit_level, select};
use super::tables::tables;
use super::{Math, poly};

/// π/2 in parts: the products of the first three with a quadrant number of 20 bits are exact.
const HALF_PI_PLAIN: [f64; 4] =
    [1.5707963267341256, 6.077094383272197e-11, 6.12323399538461e-17, 3.5215598651832e-27];

impl Math for f64 {
    tables!(wide);
    bit_level!(f64, u64, mantissa 52, bias 1023);

    #[inline(always)]
    fn product_lost(self, b: f64, _: f64) -> f64 {
        Pair::product::<false>(self, b).1
    }

    #[inline(always)]
    fn quadrant_plain(self) -> (f64, f64, f64) {
        let [a, b, c, d] = HALF_PI_PLAIN;
        let t = self * f64::TWO_OVER_PI + f64::MAGIC;
        let n = f64::MAGIC - t;
        let first = (self + n * a) + n * b;
        let part = n * c;
        let r = first + part;
        (t, r, ((first - r) + part) + n * d)
    }

    #[inline(always)]
    fn ln_1p_tail<const FMA: bool>(f: f64) -> f64 {
        // 2 (atanh s - s) / s³ in s². 2^-59
        const TAIL: &[f64] = &[
            0.6666666666666735,
            0.39999999999409114,
            0.2857142874378966,
            0.22222198413495653,
            0.18183573402641437,
            0.153137994071439,
            0.1479864363505164,
        ];
        // With s = f / (2 + f): ln(1 + f) = 2s + 2s³/3 + ..., and 2s = f - f²/2 + s f²/2.
        let s = f / (2.0 + f);
        let square = s * s;
        let half = 0.5 * f * f;
        s.fma::<FMA>(square.fma::<FMA>(poly::<f64, FMA>(square, TAIL), half), -half)
    }

    #[inline(always)]
    fn pow_magnitude<const FMA: bool>(x: f64, y: f64) -> f64 {
        // (2 atanh √u / √u - 2 - 2u/3) / u². 2^-66
        const LN: &[f64] = &[
            0.4000000000000226,
            0.28571428570096224,
            0.22222222520629045,
            0.18181784297058168,
            0.1538676089986245,
            0.13256727434772547,
            0.13197228359946753,
        ];
        const TWO_THIRDS: Pair = Pair(0.6666666666666666, 3.700743415417188e-17);
        let (e, f) = x.split();
        // s = f / (2 + f), in two parts; 1 / (2 + f) is (1 - s) / 2.
        let bottom = Pair::sum(2.0, f);
        let quotient = f / bottom.0;
        let product = Pair::product::<FMA>(quotient, bottom.0);
        let rest = ((f - product.0) - product.1) - quotient * bottom.1;
        let s = Pair(quotient, rest * (0.5 - 0.5 * quotient));
        // ln(1 + f) = s (2 + s² (2/3 + s² R))
        let square = Pair::product::<FMA>(s.0, s.0);
        let square = Pair(square.0, square.1 + 2.0 * s.0 * s.1);
        let inner = Pair::sum(TWO_THIRDS.0, square.0 * poly::<f64, FMA>(square.0, LN));
        let inner = Pair(inner.0, inner.1 + TWO_THIRDS.1);
        let inner = square.times::<FMA>(inner);
        let sum = Pair::sum(2.0, inner.0);
        let ln = s.times::<FMA>(Pair(sum.0, sum.1 + inner.1));
        let whole = Pair::sum(e * f64::LN2_HI, ln.0);
        let ln = Pair(whole.0, whole.1 + (e * f64::LN2_LO + ln.1));
        let high = select(x == 0.0, f64::NEG_INFINITY, select(x < f64::INFINITY, ln.0, x));

        // Beyond 2^64 only the sign of y matters, and its product would overflow.
        const LIMIT: f64 = (1u128 << 64) as f64;
        let y = super::clamp(y, -LIMIT, LIMIT);
        let z = Pair::product::<FMA>(y, high);
        let low = select(z.0.abs() < 800.0, z.1 + y * ln.1, 0.0);
        let z = super::clamp(z.0, f64::EXP_MIN, f64::EXP_MAX);
        let t = z.fma::<FMA>(f64::LOG2_E, f64::MAGIC);
        let n = f64::MAGIC - t;
        let first = n.fma::<FMA>(f64::LN2_HI, z);
        let second = n.fma::<FMA>(f64::LN2_LO, low);
        let r = first + second;
        let lost = (first - r) + second;
        let p = (r * r).fma::<FMA>(poly::<f64, FMA>(r, f64::EXP), lost) + r;
        let (a, b) = t.pow2_halves(0);
        (1.0 + p) * a * b
    }
}

/// A number as the unrounded sum of two.
#[derive(Clone, Copy)]
struct Pair(f64, f64);

impl Pair {
    /// a + b, exactly, where |a| ≥ |b| or a = 0.
    #[inline(always)]
    fn sum(a: f64, b: f64) -> Pair {
        let sum = a + b;
        Pair(sum, b - (sum - a))
    }

    /// a · b, exactly.
    #[inline(always)]
    fn product<const FMA: bool>(a: f64, b: f64) -> Pair {
        let product = a * b;
        if FMA {
            return Pair(product, a.mul_add(b, -product));
        }
        // Halves of 26 bits have exact products.
        let halves = |x: f64| {
            let wide = x * 134217729.0;
            let high = wide - (wide - x);
            (high, x - high)
        };
        let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
        Pair(product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
    }

    /// The product to about 2^-100.
    #[inline(always)]
    fn times<const FMA: bool>(self, other: Pair) -> Pair {
        let product = Pair::product::<FMA>(self.0, other.0);
        Pair(product.0, product.1 + (self.0 * other.1 + self.1 * other.0))
    }
}
