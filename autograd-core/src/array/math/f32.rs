//! Tables and steps of `f32`.

use super::f64::HALF_PI_PLAIN;
use super::{Real, bit_level, poly};

impl Real for f32 {
    bit_level!(f32, u32, mantissa 23, bias 127);

    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2_HI: f32 = 0.693145751953125;
    const LN2_LO: f32 = 1.428606765330187e-06;
    const LOG2_E_LO: f32 = 1.925963033500011e-08;
    const LOG10_E: f32 = std::f32::consts::LOG10_E;
    const LOG10_E_LO: f32 = -1.0103049952192578e-08;
    const LOG10_2_HI: f32 = 0.30103302001953125;
    const LOG10_2_LO: f32 = -3.024355464731343e-06;
    const PI_HI: f32 = std::f32::consts::PI;
    const PI_LO: f32 = -8.742277657347586e-08;
    const HALF_PI: [f32; 3] =
        [std::f32::consts::FRAC_PI_2, -4.371138828673793e-08, -1.7151245100058819e-15];
    const TWO_OVER_PI: f32 = std::f32::consts::FRAC_2_PI;

    const EXP_MIN: f32 = -104.0;
    const EXP_MAX: f32 = 89.0;
    const SINH_MAX: f32 = 90.0;
    const TINY: f32 = 1.0 / 18446744073709551616.0;
    const TINY_EXPONENT: f32 = -64.0;
    // 0.06 half ulp
    const EXP: &'static [f32] = &[
        0.5, 0.16666533052921295, 0.04166724905371666, 0.008367625996470451, 0.001386319869197905,
    ];
    const EXP_M1_MIN: f32 = -18.0;
    const EXP_M1_MAX: f32 = 88.73;
    // 0.09
    const EXP_M1: &'static [f32] = &[
        0.5, 0.16666662693023682, 0.041665878146886826, 0.008333774283528328, 0.001398104359395802, 0.0001978629152290523,
    ];

    const TANH_SPLIT: f32 = 0.625;
    const TANH_MAX: f32 = 10.0;
    // 0.08
    const TANH_N: &'static [f32] = &[
        -0.3333328068256378, 0.13331405818462372, -0.05373653024435043, 0.020628267899155617, -0.005692460108548403,
    ];
    const TANH_D: &'static [f32] = &[1.0];
    const SINH: &'static [f32] = &[0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06];

    const ERF_SPLIT: f32 = 0.8;
    const ERF_MAX: f32 = 4.0;
    const ERF: &'static [f32] = &[
        0.12837916612625122, -0.37612608075141907, 0.11283091455698013, -0.02681676298379898, 0.005073763430118561, -0.0006443632300943136
    ];
    const ERFC: &'static [f32] = &[
        5.621392483590171e-05, 1.1282742023468018, 0.6361369490623474, 0.10488121956586838, -0.02269981987774372, 0.0031655223574489355, -0.00020876432245131582,
    ];

    const SIN: &'static [f32] = &[-0.16666653752326965, 0.008332106284797192, -0.00019507884280756116];
    const COS: &'static [f32] = &[0.04166664555668831, -0.0013887304812669754, 2.4431425117654726e-05];
    const TAN: &'static [f32] = &[0.3333335220813751, 0.1333257555961609, 0.05407023802399635, 0.02122712880373001, 0.010982655920088291, -0.00010136509081348777, 0.004472583532333374];
    const ATAN: &'static [f32] = &[-0.33333298563957214, 0.1999852955341339, -0.14264017343521118, 0.10950902104377747, -0.08399427682161331, 0.05788467824459076, -0.031101584434509277, 0.010871891863644123, -0.0017837053164839745];
    const ASIN: &'static [f32] = &[0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184780195355415, 0.04215829819440842];

    /// In f64: with 24 bits, seven products would be needed for the same accuracy.
    #[inline(always)]
    fn quadrant_plain(self) -> (f32, f32, f32) {
        let x = self as f64;
        let n = (x * f64::TWO_OVER_PI + f64::MAGIC) - f64::MAGIC;
        let r = (x - n * HALF_PI_PLAIN[0]) - n * HALF_PI_PLAIN[1];
        (n as f32 + f32::MAGIC, r as f32, 0.0)
    }

    #[inline(always)]
    fn ln_1p_tail<const FMA: bool>(f: f32) -> f32 {
        const TAIL: &[f32] = &[
            -0.5, 0.3333333134651184, -0.2500082552433014, 0.20001251995563507, -0.16623196005821228, 0.1420115828514099, -0.13161377608776093, 0.12766200304031372, -0.07636605203151703,
        ];
        f * f * poly::<f32, FMA>(f, TAIL)
    }

    /// 2^(y log₂ x) in f64, which leaves the rounding to f32 as the only error.
    #[inline(always)]
    fn pow_magnitude<const FMA: bool>(x: f32, y: f32) -> f32 {
        const LOG2: &[f64] = &[2.885390081790162, 0.9617966732572014, 0.5770836014214112, 0.41167169753724286, 0.3407496916672895];
        const EXP2: &[f64] = &[1.0000000005631318, 0.6931472060323325, 0.240226468438293, 0.05550328130353432, 0.009618491898820742, 0.0013400193397419679, 0.00015345572435366504];
        let wide = x as f64;
        let (e, f, _) = wide.split_normal();
        let s = f / (2.0 + f);
        let log2 = s.fma::<FMA>(poly::<f64, FMA>(s * s, LOG2), e);
        let log2 = f64::select(x == 0.0, f64::NEG_INFINITY, f64::select(x < f32::INFINITY, log2, wide));
        let exponent = super::clamp(log2 * y as f64, -200.0, 200.0);
        let t = exponent + f64::MAGIC;
        let r = exponent - (t - f64::MAGIC);
        (poly::<f64, FMA>(r, EXP2) * t.pow2()) as f32
    }
}
