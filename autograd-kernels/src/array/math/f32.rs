//! Steps of `f32`.

use super::steps::{bit_level, select};
use super::tables::tables;
use super::{Math, poly};

impl Math for f32 {
    tables!(narrow);
    bit_level!(f32, u32, mantissa 23, bias 127);

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
