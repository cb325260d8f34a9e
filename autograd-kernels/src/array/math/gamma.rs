//! The inverse error function, and the logarithm of the gamma function with its derivative. Quotients of polynomials,
//! fitted as those of `tables` are, are short enough only at full precision: f32 is computed as f64, and rounded.

use super::{Math, ln_parts, poly, select};

/// (erfinv x / x - √π/2) / x² in 0.7225 - x², as a quotient. 2^-56
const ERFINV: &[f64] = &[
    0.43087250673264127,
    4.200961985811151,
    15.387116615402018,
    26.36623682982026,
    21.446869141846996,
    7.424877546500054,
    0.7896943043584372,
    0.003074157160539238,
];
const ERFINV_BELOW: &[f64] = &[
    1.0,
    11.255975121261837,
    49.44515841058283,
    107.49538723253815,
    121.2413603127151,
    68.03410546420845,
    16.531391035468133,
    1.2131417722074302,
];
/// erfinv x - s in s = √(-ln(1 - x)), for x ≥ 0.85. 2^-56
const ERFINV_TAIL: &[f64] = &[
    4.290554392265329e-05,
    -0.9971820998691221,
    0.4813683604671443,
    0.17678156043975102,
    2.3409203082422216,
    1.7987343825072097,
    0.22375100843787882,
    0.0016213926788009008,
    -0.0001774614045361575,
    -2.6083286473632945e-07,
];
const ERFINV_TAIL_BELOW: &[f64] = &[
    1.0,
    0.3718135146667242,
    0.3228980373676453,
    -3.022852680403296,
    -3.579353595355091,
    -4.572603709630725,
    -1.4939953821592908,
    -0.1084096781655637,
    0.0005774197934591228,
    6.83102874067845e-05,
];
/// digamma(1 + m) / (m - root) - 1 in m on [0, 1]. 2^-55
const DIGAMMA: &[f64] = &[
    0.2503801375034054,
    -0.30909081658703635,
    -0.6926175661816281,
    -0.3559523752179304,
    -0.07164611345127905,
    -0.005585407328018556,
    -0.00012160252998968997,
];
const DIGAMMA_BELOW: &[f64] = &[
    1.0,
    2.1790967504654013,
    1.666960048915788,
    0.5736351819347498,
    0.09182580063957707,
    0.006176637354640508,
    0.0001227228949527623,
];
/// (ln z - 1/2z - digamma z) z² in 1/z², for z ≥ 2. 2^-57
const DIGAMMA_FAR: &[f64] = &[
    0.08333333333333276,
    1.5252103023871844,
    8.964443578886783,
    20.66033950784277,
    18.19452566340309,
    4.933269684488732,
    0.18676665411802365,
];
const DIGAMMA_FAR_BELOW: &[f64] = &[
    1.0,
    18.40252362864316,
    109.36595626237852,
    258.03435902960143,
    239.7590604975822,
    74.93616379518815,
    4.9373458223939855,
];
/// lgamma(v + 1) / v(v - 1) - 1/2 in v + 1/2 on [0, 5/2]. 2^-55
const LGAMMA: &[f64] = &[
    0.2631532572329334,
    1.3300112935040622,
    2.124247076831276,
    0.3834558552370656,
    -2.279564390396521,
    -2.4552706278149676,
    -1.0277826559727685,
    -0.18795906212441468,
    -0.013359277403536835,
    -0.0002513737561896727,
];
const LGAMMA_BELOW: &[f64] = &[
    1.0,
    7.269335477836014,
    21.44753992404455,
    33.12204035866478,
    28.857619132340655,
    14.29969450193009,
    3.88581926898465,
    0.531414499072739,
    0.030839967604398673,
    0.0005099909102013871,
];
/// (lgamma z - (z - 1/2) ln z + z - ln(2π)/2) z in 1/z², for z ≥ 3. 2^-58
const LGAMMA_FAR: &[f64] = &[
    0.08333333333333116,
    0.6753930931116896,
    1.352004657353838,
    0.6711754168630029,
    0.04236540425769857,
];
const LGAMMA_FAR_BELOW: &[f64] =
    &[1.0, 8.138050450664412, 16.485800428269176, 8.533269217806803, 0.6838507358421486];
/// (1/r - π cot πr) / r in r² on |r| ≤ 1/2. 2^-55
const COTANGENT: &[f64] = &[
    3.289868133696453,
    2.164646467422224,
    2.034686123984366,
    2.008154710591922,
    2.001989260270885,
    2.000488143302747,
    2.000218504193331,
    1.99846922640637,
    2.017841144607922,
    1.8549581539531965,
    2.84031622031827,
    -1.4165862011742238,
    11.391546807168353,
    -14.101109842685112,
    16.063127155706468,
];
/// sin(πr) / πr in r² on |r| ≤ 1/2. 2^-55
const SINE: &[f64] = &[
    1.0,
    -1.6449340668482262,
    0.8117424252833373,
    -0.19075182412143066,
    0.02614784780453166,
    -0.0023460808868374884,
    0.0001484278009215683,
    -6.97200056499352e-06,
    2.4493084886450064e-07,
];

/// √π/2.
const HALF_SQRT_PI: f64 = 0.886226925452758;
/// The positive root of digamma less 1, in two parts.
const ROOT: [f64; 2] = [0.46163214496836236, -1.5522348162858677e-17];
/// (ln(2π) - 1) / 2.
const LGAMMA_CONSTANT: f64 = 0.4189385332046727;

/// ±∞ at ±1, NaN beyond.
#[inline(always)]
pub(super) fn erfinv<const FMA: bool>(x: f64) -> f64 {
    let a = x.abs();
    let near = a < 0.85;
    let v = (-a).fma::<FMA>(a, 0.7225);
    let s = (-(1.0 - a).v_ln::<FMA>()).sqrt();
    let above = select(near, poly::<f64, FMA>(v, ERFINV), poly::<f64, FMA>(s, ERFINV_TAIL));
    let below =
        select(near, poly::<f64, FMA>(v, ERFINV_BELOW), poly::<f64, FMA>(s, ERFINV_TAIL_BELOW));
    let factor = select(near, a * (a * a), 1.0);
    let y = factor.fma::<FMA>(above / below, select(near, a * HALF_SQRT_PI, s));
    select(a == 1.0, f64::INFINITY, y).copysign(x)
}

/// A quotient on [0, 2), and Stirling's series. Below 0, digamma(|x|) + 1/|x| - π / tan(πx).
#[inline(always)]
pub(super) fn digamma<const FMA: bool>(x: f64) -> f64 {
    let (below, z) = (x < 0.0, x.abs());
    let small = z < 1.0;
    let m = select(small, z, z - 1.0);
    let slope = poly::<f64, FMA>(m, DIGAMMA) / poly::<f64, FMA>(m, DIGAMMA_BELOW);
    let from_root = (m - ROOT[0]) - ROOT[1];
    let near = from_root.fma::<FMA>(slope, from_root);
    let inverse = 1.0 / x;
    let w = inverse * inverse;
    let rest = poly::<f64, FMA>(w, DIGAMMA_FAR) / poly::<f64, FMA>(w, DIGAMMA_FAR_BELOW);
    let less = w.fma::<FMA>(rest, 0.5 * inverse.abs());
    let (e, f, tail) = ln_parts::<f64, FMA>(z);
    let low = e.fma::<FMA>(f64::LN2_LO, tail) - less;
    let far = e.fma::<FMA>(f64::LN2_HI, f + low);
    let y = select(z < 2.0, near, select(z < f64::INFINITY, far, z));
    // The quotient is that of 1 + |x| if `small`.
    let y = y - select(small ^ below, inverse, 0.0);
    let r = x - x.v_round::<FMA>();
    let w = r * r;
    let cotangent = (-w).fma::<FMA>(poly::<f64, FMA>(w, COTANGENT), 1.0) / r;
    select(below, select(r == 0.0, f64::NAN, y - cotangent), y)
}

/// A quotient on [0, 3), and Stirling's series. Below 0, -ln(|x sin(πx) / π|) - lgamma(|x|).
#[inline(always)]
pub(super) fn lgamma<const FMA: bool>(x: f64) -> f64 {
    let (below, z) = (x < 0.0, x.abs());
    let small = z < 0.5;
    let v = select(small, z, z - 1.0);
    let t = v + 0.5;
    let quotient = poly::<f64, FMA>(t, LGAMMA) / poly::<f64, FMA>(t, LGAMMA_BELOW);
    let product = v * (v - 1.0);
    let near = product.fma::<FMA>(quotient, 0.5 * product);
    // All terms of (z - 1/2) (ln z - 1) + (ln(2π) - 1) / 2 + .. are positive.
    let (e, f, tail) = ln_parts::<f64, FMA>(z);
    let low = e.fma::<FMA>(f64::LN2_LO, tail);
    let ln_less_1 = e.fma::<FMA>(f64::LN2_HI, -1.0) + (f + low);
    let inverse = 1.0 / z;
    let w = inverse * inverse;
    let rest = poly::<f64, FMA>(w, LGAMMA_FAR) / poly::<f64, FMA>(w, LGAMMA_FAR_BELOW);
    let far = (z - 0.5).fma::<FMA>(ln_less_1, inverse.fma::<FMA>(rest, LGAMMA_CONSTANT));
    let y = select(z < 3.0, near, far);
    // The quotient is that of 1 + |x| if `small`.
    let r = x - x.v_round::<FMA>();
    let sine = r.abs() * poly::<f64, FMA>(r * r, SINE);
    let of_ln = select(below, sine * select(small, 1.0, z), z);
    let ln = select(below | small, of_ln.v_ln::<FMA>(), 0.0);
    let y = select(below, -y, y) - ln;
    // At poles beyond the range of the second term, both terms are infinite.
    let y = select(below & (r == 0.0) | (x == -f64::INFINITY), f64::INFINITY, y);
    // The zero at 1 is positive.
    y + 0.0
}
