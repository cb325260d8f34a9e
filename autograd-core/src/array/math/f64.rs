//! Tables and steps of `f64`.

use super::{Real, bit_level, poly};

/// π/2 in parts: the products of the first three with a quadrant number of 20 bits are exact.
pub(super) const HALF_PI_PLAIN: [f64; 4] =
    [1.5707963267341256, 6.077094383272197e-11, 6.12323399538461e-17, 3.5215598651832e-27];

impl Real for f64 {
    bit_level!(f64, u64, mantissa 52, bias 1023);

    const LOG2_E: f64 = std::f64::consts::LOG2_E;
    const LN2_HI: f64 = 0.6931471805601177;
    const LN2_LO: f64 = -1.7239444525614835e-13;
    const LOG2_E_LO: f64 = 2.0355273740931033e-17;
    const LOG10_E: f64 = std::f64::consts::LOG10_E;
    const LOG10_E_LO: f64 = 1.098319650216765e-17;
    const LOG10_2_HI: f64 = 0.3010299956640665;
    const LOG10_2_LO: f64 = -8.532344317057107e-14;
    const PI_HI: f64 = std::f64::consts::PI;
    const PI_LO: f64 = 1.2246467991473532e-16;
    const HALF_PI: [f64; 3] =
        [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
    const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;

    const EXP_MIN: f64 = -746.0;
    const EXP_MAX: f64 = 710.0;
    const SINH_MAX: f64 = 711.0;
    const TINY: f64 = 1.0 / (f64::INTEGERS * f64::INTEGERS * f64::INTEGERS * f64::INTEGERS * f64::INTEGERS);
    const TINY_EXPONENT: f64 = -260.0;
    const EXP: &'static [f64] = &[
        0.5, 0.16666666666666427, 0.04166666666660253, 0.00833333333350345, 0.001388888892744139, 0.0001984126946063925, 2.480150779194503e-05, 2.7557643882660466e-06, 2.7625571069506345e-07, 2.4978129637437465e-08,
    ];
    const EXP_M1_MIN: f64 = -40.0;
    const EXP_M1_MAX: f64 = 709.79;
    const EXP_M1: &'static [f64] = &[
        0.5, 0.16666666666667007, 0.04166666666666337, 0.008333333333129229, 0.0013888888889864671, 0.00019841270228840438, 2.4801586390810256e-05, 2.7557001635278866e-06, 2.7557607825665553e-07, 2.5169495342372154e-08, 2.0881624634939184e-09,
    ];

    const TANH_SPLIT: f64 = 0.625;
    const TANH_MAX: f64 = 20.0;
    const TANH_N: &'static [f64] = &[-0.3333333333333328, -0.01656002501828144, -8.496615334534694e-06, 7.443277831567474e-08];
    const TANH_D: &'static [f64] = &[1.0, 0.4496800750547648, 0.017992757964511684];
    const SINH: &'static [f64] = &[0.16666666666666669, 0.008333333333332912, 0.00019841269841593394, 2.7557319106755237e-06, 2.5052131001539737e-08, 1.605665890453677e-10, 7.776599050723094e-13];

    const ERF_SPLIT: f64 = 0.8;
    const ERF_MAX: f64 = 6.0;
    const ERF: &'static [f64] = &[0.12837916709551256, -0.3761263890318325, 0.11283791670927619, -0.02686617063925944, 0.005223977561070632, -0.0008548322903812553, 0.00012055168561142067, -1.4921433555399638e-05, 1.6392500522975498e-06, -1.564731759520624e-07, 1.0516496590150047e-08];
    const ERFC: &'static [f64] = &[1.7708595206191963e-08, 1.12837897962989, 0.636620648792458, 0.1027703094177951, -0.019125183903739223, -0.00020986242019331567, 0.0016880858995438576, -0.0005688779125434993, -6.2338060724058875e-06, 9.907565061006606e-05, -5.79194676879898e-05, 2.1115205091547725e-05, -5.625483510816632e-06, 1.1361168600121394e-06, -1.7356298199693379e-07, 1.952553611150421e-08, -1.5292246711530279e-09, 7.45237455123963e-11, -1.7014749999059111e-12];

    const SIN: &'static [f64] = &[-0.1666666666666663, 0.008333333333321745, -0.00019841269829237628, 2.7557313486095604e-06, -2.505072496434704e-08, 1.589483141737679e-10];
    const COS: &'static [f64] = &[0.04166666666666659, -0.0013888888888872186, 2.4801587288295495e-05, -2.755731401520416e-07, 2.087567811543925e-09, -1.1357340097617634e-11];
    const TAN: &'static [f64] = &[0.3333333333333268, 0.13333333333427722, 0.05396825392043506, 0.021869489757788907, 0.008863217076929428, 0.003592307833403117, 0.001454644480261729, 0.0005955405174092437, 0.00022098125703414747, 0.00013939924136666714, -3.0428179087683994e-05, 9.316015062260386e-05, -4.687468568743382e-05, 2.13430047628974e-05];
    const ATAN: &'static [f64] = &[-0.3333333333333186, 0.199999999997552, -0.14285714271342478, 0.11111110678923855, -0.0909090123787769, 0.07692212954383804, -0.06665860525875503, 0.058773085876695434, -0.05239236079020896, 0.04673958447581209, -0.040926577215859475, 0.03406814215355446, -0.02582722873938643, 0.016978463976551617, -0.009184875459246216, 0.003856143272062358, -0.0011641326925229088, 0.00022303579339981526, -2.0259899756770812e-05];
    const ASIN: &'static [f64] = &[0.16666666666665408, 0.07500000000337144, 0.04464285682822739, 0.03038195914070572, 0.022371757971426934, 0.017359705813135243, 0.013885226221192691, 0.0121692668285098, 0.006527752964434774, 0.019528846278325584, -0.016225144263015023, 0.03191287917483233];

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
        const TAIL: &[f64] = &[
            0.6666666666666735, 0.39999999999409114, 0.2857142874377761, 0.22222198416992262, 0.18183573531432268, 0.15313775397766297, 0.1479919797071356,
        ];
        // With s = f / (2 + f): ln(1 + f) = 2s + 2s³/3 + ..., and 2s = f - f²/2 + s f²/2.
        let s = f / (2.0 + f);
        let square = s * s;
        let half = 0.5 * f * f;
        s.fma::<FMA>(square.fma::<FMA>(poly::<f64, FMA>(square, TAIL), half), -half)
    }

    #[inline(always)]
    fn pow_magnitude<const FMA: bool>(x: f64, y: f64) -> f64 {
        // (2 atanh √u / √u - 2) / u - 2/3, over u
        const LN: &[f64] = &[0.4000000000000226, 0.2857142857009623, 0.22222222520627524, 0.18181784297214418, 0.15386760892195447, 0.13256727616431738, 0.13197226685756525];
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
        let high = f64::select(x == 0.0, f64::NEG_INFINITY, f64::select(x < f64::INFINITY, ln.0, x));

        // Beyond 2^64 only the sign of y matters, and its product would overflow.
        let y = super::clamp(y, -18446744073709551616.0, 18446744073709551616.0);
        let z = Pair::product::<FMA>(y, high);
        let low = f64::select(z.0.abs() < 800.0, z.1 + y * ln.1, 0.0);
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
