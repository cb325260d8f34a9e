//! Tables and steps of `f32`.

use super::poly;
use super::real::{Real, bit_level, select};

impl Real for f32 {
    bit_level!(f32, u32, mantissa 23, bias 127);

    const LN2_HI: f32 = 0.69314575;
    const LN2_LO: f32 = 1.4286068e-6;
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LOG2_E_LO: f32 = 1.925963e-8;
    const LOG10_E: f32 = std::f32::consts::LOG10_E;
    const LOG10_E_LO: f32 = -1.010305e-8;
    const LOG10_2_HI: f32 = 0.30103302;
    const LOG10_2_LO: f32 = -3.0243555e-6;
    const PI_HI: f32 = std::f32::consts::PI;
    const PI_LO: f32 = -8.742278e-8;
    const HALF_PI: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371139e-8, -1.7151245e-15];
    const TWO_OVER_PI: f32 = std::f32::consts::FRAC_2_PI;

    const EXP_MIN: f32 = -104.0;
    const EXP_MAX: f32 = 89.0;
    const SINH_MAX: f32 = 90.0;
    const TINY: f32 = f32::from_bits((127 - 64) << 23);
    const TINY_EXPONENT: f32 = -64.0;
    // 2^-28
    const EXP: &'static [f32] = &[0.5, 0.16666533, 0.04166725, 0.008367626, 0.0013863199];
    const EXP_M1_MIN: f32 = -18.0;
    const EXP_M1_MAX: f32 = 88.73;
    // 2^-27
    const EXP_M1: &'static [f32] =
        &[0.5, 0.16666663, 0.04166588, 0.008333774, 0.0013980905, 0.00019789186];

    // 2^-26
    const EXP2: &'static [f32] =
        &[0.3465736, 0.12011297, 0.027751831, 0.0048127146, 0.00066939276, 6.6680834e-5];

    const TANH_SPLIT: f32 = 0.75;
    const TANH_MAX: f32 = 10.0;
    // 2^-25.4
    const TANH: &'static [f32] = &[3.0000074, 1.1999174, -0.005453115];
    // 2^-31
    const SINH: &'static [f32] = &[0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-6];

    const ERF_SPLIT: f32 = 0.8;
    const ERF_MAX: f32 = 4.0;
    // 2^-28
    const ERF: &'static [f32] =
        &[0.12837917, -0.37612608, 0.11283161, -0.026822124, 0.005086571, -0.00065399567];
    // 2^-28
    const ERFC: &'static [f32] = &[
        5.6213925e-5,
        1.1282742,
        0.63613695,
        0.10488122,
        -0.02269982,
        0.0031655224,
        -0.00020876432,
    ];

    // 2^-27
    const SIN: &'static [f32] = &[-0.1666665, 0.008331838, -0.00019473341];
    // 2^-32
    const COS: &'static [f32] = &[0.041666638, -0.0013886953, 2.4392617e-5];
    // 2^-28
    const TAN: &'static [f32] =
        &[0.33333373, 0.13331866, 0.054148614, 0.020834416, 0.011967803, -0.0013077819, 0.00504665];
    // 2^-28
    const ATAN: &'static [f32] = &[
        -0.333333,
        0.1999853,
        -0.14264017,
        0.10950902,
        -0.08399428,
        0.05788468,
        -0.031101584,
        0.010871892,
        -0.0017837053,
    ];
    // 2^-27
    const ASIN: &'static [f32] = &[0.16666752, 0.074953094, 0.04546915, 0.02418478, 0.0421583];

    #[inline(always)]
    fn product_lost(self, b: f32, product: f32) -> f32 {
        (self as f64 * b as f64 - product as f64) as f32
    }

    /// In f64: with 24 bits, seven products would be needed for the same accuracy.
    #[inline(always)]
    fn quadrant_plain(self) -> (f32, f32, f32) {
        let x = self as f64;
        let n = (x * f64::TWO_OVER_PI + f64::MAGIC) - f64::MAGIC;
        let r = (x - n * 1.5707963267341256) - n * 6.077100506506192e-11;
        let rounded = r as f32;
        (n as f32 + f32::MAGIC, rounded, (r - rounded as f64) as f32)
    }

    #[inline(always)]
    fn ln_1p_tail<const FMA: bool>(f: f32) -> f32 {
        // (ln(1 + f) - f) / f². 2^-27
        const TAIL: &[f32] = &[
            -0.5,
            0.3333333,
            -0.25000826,
            0.20001252,
            -0.16623195,
            0.1420117,
            -0.13161433,
            0.12766054,
            -0.07636152,
        ];
        f * f * poly::<f32, FMA>(f, TAIL)
    }

    /// 2^(y log₂ x) in f64, which leaves the rounding to f32 as the only error.
    #[inline(always)]
    fn pow_magnitude<const FMA: bool>(x: f32, y: f32) -> f32 {
        // log₂(1 + f) / s in s², s = f / (2 + f): 2^-37
        const LOG2: &[f64] = &[
            2.8853900817903297,
            0.9617966731813433,
            0.5770836106829927,
            0.41167127863422254,
            0.3407560081808569,
        ];
        // 2^r on |r| ≤ 1/2. 2^-28
        const EXP2: &[f64] = &[
            1.0000000005631318,
            0.6931472060323325,
            0.240226468438293,
            0.05550328130353432,
            0.009618491898820742,
            0.0013400193397419679,
            0.00015345572435366504,
        ];
        let wide = x as f64;
        let (e, f, _) = wide.split_normal();
        let s = f / (2.0 + f);
        let log2 = s.fma::<FMA>(poly::<f64, FMA>(s * s, LOG2), e);
        let log2 = select(x == 0.0, f64::NEG_INFINITY, select(x < f32::INFINITY, log2, wide));
        let exponent = super::clamp(log2 * y as f64, -200.0, 200.0);
        let t = exponent + f64::MAGIC;
        let r = exponent - (t - f64::MAGIC);
        (poly::<f64, FMA>(r, EXP2) * t.pow2()) as f32
    }
}
