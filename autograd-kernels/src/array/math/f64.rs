//! Tables and steps of `f64`.

use super::poly;
use super::real::{Real, bit_level, select};

/// π/2 in parts: the products of the first three with a quadrant number of 20 bits are exact.
pub(super) const HALF_PI_PLAIN: [f64; 4] =
    [1.5707963267341256, 6.077094383272197e-11, 6.12323399538461e-17, 3.5215598651832e-27];

impl Real for f64 {
    bit_level!(f64, u64, mantissa 52, bias 1023);

    const LN2_HI: f64 = 0.6931471805601177;
    const LN2_LO: f64 = -1.7239444525614835e-13;
    const LOG2_E: f64 = std::f64::consts::LOG2_E;
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
    const TINY: f64 = f64::from_bits((1023 - 260) << 52);
    const TINY_EXPONENT: f64 = -260.0;
    // 2^-57
    const EXP: &'static [f64] = &[
        0.5,
        0.16666666666666427,
        0.04166666666660253,
        0.00833333333350378,
        0.0013888888927446942,
        0.00019841269459734703,
        2.4801507781285005e-5,
        2.755764469657688e-6,
        2.762557611936214e-7,
        2.497788904040863e-8,
    ];
    const EXP_M1_MIN: f64 = -40.0;
    const EXP_M1_MAX: f64 = 709.79;
    // 2^-55
    const EXP_M1: &'static [f64] = &[
        0.5,
        0.16666666666667007,
        0.041666666666663216,
        0.008333333333128889,
        0.0013888888889897254,
        0.00019841270229404963,
        2.480158636578571e-5,
        2.755700133414876e-6,
        2.7557616084898856e-7,
        2.516954733403897e-8,
        2.0880630897049863e-9,
    ];

    // 2^-57
    const EXP2: &'static [f64] = &[
        0.34657359027997264,
        0.12011325347955086,
        0.027752054332412287,
        0.004809064553788556,
        0.000666677907278388,
        7.701765239389254e-5,
        7.626367368808506e-6,
        6.607712263757172e-7,
        5.0888280896913714e-8,
        3.537804235870862e-9,
        2.259660200722369e-10,
    ];

    const TANH_SPLIT: f64 = 0.75;
    const TANH_MAX: f64 = 20.0;
    // 2^-61
    const TANH: &'static [f64] = &[
        3.0000000000000004,
        1.1999999999999729,
        -0.005714285713730013,
        0.00025396824851550936,
        -1.2203639886182854e-5,
        5.98673711529173e-7,
        -2.9395954749749287e-8,
        1.294993957172472e-9,
    ];
    // 2^-61
    const SINH: &'static [f64] = &[
        0.16666666666666669,
        0.008333333333332912,
        0.00019841269841593394,
        2.7557319106767417e-6,
        2.505213099613237e-8,
        1.60566594371735e-10,
        7.77658993679224e-13,
    ];

    const ERF_SPLIT: f64 = 0.8;
    const ERF_MAX: f64 = 6.0;
    // 2^-55
    const ERF: &'static [f64] = &[
        0.12837916709551256,
        -0.3761263890318325,
        0.11283791670927619,
        -0.02686617063925944,
        0.005223977561070632,
        -0.0008548322903812553,
        0.00012055168561142067,
        -1.4921433555400428e-5,
        1.639250052301954e-6,
        -1.5647317595983256e-7,
        1.0516496594531834e-8,
    ];
    // 2^-57
    const ERFC: &'static [f64] = &[
        1.7708595206191963e-8,
        1.12837897962989,
        0.636620648792458,
        0.1027703094177951,
        -0.019125183903739223,
        -0.00020986242019331567,
        0.0016880858995438576,
        -0.0005688779125434993,
        -6.2338060724058875e-6,
        9.907565061006606e-5,
        -5.79194676879898e-5,
        2.1115205091547725e-5,
        -5.625483510816632e-6,
        1.1361168600121394e-6,
        -1.7356298199693379e-7,
        1.952553611150421e-8,
        -1.5292246711530279e-9,
        7.45237455123963e-11,
        -1.7014749999059111e-12,
    ];

    // 2^-57
    const SIN: &'static [f64] = &[
        -0.1666666666666663,
        0.008333333333321745,
        -0.00019841269829238675,
        2.7557313486837618e-6,
        -2.5050725132864915e-8,
        1.5894843770054743e-10,
    ];
    // 2^-63
    const COS: &'static [f64] = &[
        0.04166666666666659,
        -0.0013888888888872186,
        2.4801587288295305e-5,
        -2.755731401506623e-7,
        2.087567807280546e-9,
        -1.1357335889826359e-11,
    ];
    // 2^-55
    const TAN: &'static [f64] = &[
        0.3333333333333268,
        0.13333333333427722,
        0.05396825392043503,
        0.021869489757790312,
        0.00886321707690286,
        0.0035923078337744977,
        0.001454644476625034,
        0.0005955405405797544,
        0.00022098116161293422,
        0.00013939949733407335,
        -3.042862358064083e-5,
        9.316063268116945e-5,
        -4.6874982652363456e-5,
        2.134308414756524e-5,
    ];
    // 2^-54
    const ATAN: &'static [f64] = &[
        -0.3333333333333186,
        0.199999999997552,
        -0.14285714271342478,
        0.11111110678923855,
        -0.0909090123787769,
        0.07692212954383804,
        -0.06665860525875503,
        0.058773085876695434,
        -0.05239236079020896,
        0.04673958447581209,
        -0.040926577215859475,
        0.03406814215355446,
        -0.02582722873938643,
        0.016978463976551617,
        -0.009184875459246216,
        0.003856143272062358,
        -0.0011641326925229088,
        0.00022303579339981526,
        -2.0259899756770812e-5,
    ];
    // 2^-55
    const ASIN: &'static [f64] = &[
        0.16666666666665408,
        0.07500000000337144,
        0.04464285682822739,
        0.03038195914070572,
        0.022371757971426934,
        0.017359705813135243,
        0.013885226221192691,
        0.0121692668285098,
        0.006527752964434774,
        0.019528846278325584,
        -0.016225144263015023,
        0.03191287917483233,
    ];

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
