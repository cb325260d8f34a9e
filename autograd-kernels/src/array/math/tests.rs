//! Accuracy against correctly rounded references, at every level this CPU has.

mod of_two;
mod pow;

use super::exact::Exact;
use super::{ANGLE_MAX, Math};
use crate::array::Storable;
use crate::array::simd::{BASELINE_FMA, Level, levels, with_level};
use crate::formula::table::*;
use crate::formula::{Compiled, Formula, Lanewise, functions};

/// The results of a formula for all numbers of the slices.
fn at_level<T, F, const I: usize>(level: Level, x: [&[T]; I], f: F) -> Vec<T>
where
    T: Math + Storable,
    F: Lanewise<I, 0, 1>,
{
    let mut y = vec![T::ZERO; x[0].len()];
    with_level(level, || Compiled(f).run_loop(x[0].len(), &x, &[], &mut y));
    y
}

/// The error in f32 ulp of the exact result; infinite if NaN or the sign of a zero is wrong.
fn error32(found: f32, exact: f64) -> f64 {
    if found.is_nan() || exact.is_nan() {
        return if found.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == 0.0 && found.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    // ∞ counts as the next number above the largest.
    const BEYOND: f64 = f64::from_bits((1023 + 128) << 52);
    let limit = |x: f64| x.clamp(-BEYOND, BEYOND);
    let exponent = (exact.to_bits() >> 52 & 0x7ff).clamp(1023 - 126, 1023 + 127);
    (limit(f64::from(found)) - limit(exact)).abs() / f64::from_bits((exponent - 23) << 52)
}

/// As [`error32`], in f64 ulp; `rounded` is the result to f64's precision.
fn error_of(found: f64, rounded: f64, exact: Option<&Exact>) -> f64 {
    match exact {
        // The sign counts even if the result underflows f64.
        Some(_) if found.is_nan() || found.is_sign_negative() != rounded.is_sign_negative() => {
            f64::INFINITY
        }
        Some(exact) => exact.distance(found),
        None => error64(found, rounded),
    }
}

/// The distance in steps between neighbours; infinite as in [`error32`].
fn error64(found: f64, rounded: f64) -> f64 {
    if found.is_nan() || rounded.is_nan() {
        return if found.is_nan() && rounded.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if found == 0.0 && rounded == 0.0 && found.is_sign_negative() != rounded.is_sign_negative() {
        return f64::INFINITY;
    }
    let place = |x: f64| {
        let bits = x.to_bits() as i64;
        if bits < 0 { i128::from(i64::MIN) - i128::from(bits) } else { i128::from(bits) }
    };
    (place(found) - place(rounded)).unsigned_abs() as f64
}

/// xorshift64: the tests need no better numbers.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// Inputs where functions change their formula or leave their range, and special values.
const PIVOTS: &[f64] = &[
    0.0,
    0.25,
    0.346_573_590_279_972_64,
    0.414_213_562_373_095_05,
    0.5,
    0.625,
    0.707_106_781_186_547_5,
    0.75,
    std::f64::consts::FRAC_PI_4,
    0.8,
    1.0,
    std::f64::consts::SQRT_2,
    1.5,
    std::f64::consts::FRAC_PI_2,
    2.0,
    2.5,
    std::f64::consts::PI,
    0.85,
    1.461_632_144_968_362_2,
    3.0,
    4.0,
    6.0,
    9.0,
    18.0,
    40.0,
    87.336,
    88.722_839,
    89.415,
    103.972,
    708.396,
    709.782_712_893_384,
    710.475_860_073_944,
    745.133_219_101_941,
    4_503_599_627_370_496.0,
    1e30,
    f64::MAX,
    f64::MIN_POSITIVE,
    f32::MAX as f64,
    f32::MIN_POSITIVE as f64,
    f64::INFINITY,
    f64::NAN,
];

fn points32() -> Vec<f32> {
    let near = PIVOTS.iter().flat_map(|&pivot| {
        let bits = (pivot as f32).to_bits();
        (-8..=8).map(move |step| f32::from_bits(bits.wrapping_add_signed(step)))
    });
    let spread = (0..=u32::MAX).step_by(STRIDE).map(f32::from_bits);
    near.clone().chain(near.map(|x| -x)).chain(spread).collect()
}

fn points64(low: f64, high: f64) -> Vec<f64> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let near = PIVOTS.iter().flat_map(|&pivot| {
        let bits = pivot.to_bits();
        (-8..=8).map(move |step| f64::from_bits(bits.wrapping_add_signed(step)))
    });
    let quadrants = (1..2000).map(|n| f64::from(n) * 331.0 * std::f64::consts::FRAC_PI_2);
    let mut points: Vec<f64> = near.chain(quadrants).collect();
    points.extend(points.clone().iter().map(|x| -x));
    for _ in 0..SAMPLES {
        points.push(f64::from_bits(random.bits()));
        points.push(random.within(low, high));
        points.push(random.within(-2.0, 2.0));
    }
    points
}

/// About four million f32 and 30,000 f64 for each function.
const STRIDE: usize = 1009;
const SAMPLES: usize = 10_000;

/// The largest errors in ulp that the table of functions states, of f32 and f64.
fn stated(formula: &str) -> [f64; 2] {
    macro_rules! figures {
        ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident
            [$e32:literal, $e64:literal, $($example:tt)*] $slope:tt;)*) => {
            match formula {
                $(stringify!($variant) => [$e32, $e64],)*
                _ => panic!("{formula} is not in the table"),
            }
        };
    }
    functions! { figures }
}

/// A result to f64's precision, enough for f32 and special values, and one with more digits.
#[derive(Clone, Copy)]
struct Reference {
    rounded: fn(f64) -> f64,
    exact: Option<fn(Exact) -> Exact>,
    /// The least result, for an argument, whose ulp is the unit of the error.
    least: fn(f64) -> f64,
}

impl Reference {
    /// The ulp of the result in units of that of the least.
    fn shrinks(&self, x: f64) -> f64 {
        let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32;
        let (least, y) = (exponent((self.least)(x)), exponent((self.rounded)(x)));
        2f64.powi(y.min(least) - least)
    }
}

/// The largest error of a function at every level for |x| up to `max`, and its input.
fn worst<F: Lanewise<1, 0, 1> + Copy>(
    f: F,
    to: Reference,
    range: (f64, f64),
    max: f64,
) -> [(f64, String); 2] {
    let x32: Vec<f32> =
        points32().into_iter().filter(|x| x.is_nan() || f64::from(x.abs()) <= max).collect();
    let exact32: Vec<f64> = x32.iter().map(|&x| (to.rounded)(f64::from(x))).collect();
    let mut x64 = points64(range.0, range.1);
    x64.retain(|x| x.is_nan() || x.abs() <= max);
    let rounded64: Vec<f64> = x64.iter().map(|&x| (to.rounded)(x)).collect();
    let exact = |(&x, &rounded): (&f64, &f64)| {
        // Without zeros, poles and NaN, but with the ends of f64's range.
        let ends = (700.0..2000.0).contains(&x.abs());
        let inside = rounded.is_finite() && rounded != 0.0 && x.is_finite() && x != 0.0;
        let asked = inside || ends && !rounded.is_nan();
        to.exact.filter(|_| asked).map(|exact| exact(Exact::from(x)))
    };
    let exact64: Vec<Option<Exact>> = x64.iter().zip(&rounded64).map(exact).collect();
    let mut worst = [(0.0, String::new()), (0.0, String::new())];
    let see = |of: &mut (f64, String), error: f64, what: &dyn Fn() -> String| {
        if error > of.0 {
            *of = (error, what());
        }
    };
    for level in levels() {
        let y32 = at_level(level, [&x32], f);
        for ((&x, &y), &exact) in x32.iter().zip(&y32).zip(&exact32) {
            see(&mut worst[0], error32(y, exact) * to.shrinks(x.into()), &|| {
                format!("{level:?}: f({x:e}f32) = {y:e}, not {exact:e}")
            });
        }
        let y64 = at_level(level, [&x64], f);
        for (i, (&x, &y)) in x64.iter().zip(&y64).enumerate() {
            let error = error_of(y, rounded64[i], exact64[i].as_ref()) * to.shrinks(x);
            see(&mut worst[1], error, &|| {
                format!("{level:?}: f({x:e}) = {y:e}, not {:e}", rounded64[i])
            });
        }
    }
    worst
}

/// `name formula (rounded, exact), range of the random f64, up to the largest argument, in units of a least result;`
macro_rules! accurate {
    ($(
        $test:ident $formula:ident ($rounded:expr, $exact:expr),
        $low:literal..$high:literal $(, up to $max:expr)? $(, in units of $least:expr)?;
    )*) => {
        $(
            /// No error is above the figure in the function's documentation.
            #[test]
            fn $test() {
                let max = [f64::INFINITY $(, $max)?].into_iter().fold(f64::INFINITY, f64::min);
                let none: fn(f64) -> f64 = |_| 0.0;
                let [least, ..] = [$($least,)? none];
                let to = Reference { rounded: $rounded, exact: $exact, least };
                let worst = worst($formula, to, ($low, $high), max);
                for ((error, at), most) in worst.into_iter().zip(stated(stringify!($formula))) {
                    assert!(error <= most, "{error} ulp, {most} are stated: {at}");
                }
            }
        )*

        mod every_f32 {
            use super::*;

            $(
                #[test]
                #[ignore = "minutes each, in a release build"]
                fn $test() {
                    let max = [f64::INFINITY $(, $max)?].into_iter().fold(f64::INFINITY, f64::min);
                    let none: fn(f64) -> f64 = |_| 0.0;
                    let [least, ..] = [$($least,)? none];
                    let to = Reference { rounded: $rounded, exact: None, least };
                    let most = stated(stringify!($formula))[0];
                    let worst = worst_of_all($formula, to, max);
                    assert!(worst <= most, "{worst} ulp, {most} are stated");
                }
            )*
        }

        #[test]
        fn an_element_does_not_depend_on_its_place() {
            let x32: Vec<f32> = points32().into_iter().step_by(5003).collect();
            let x64: Vec<f64> = points64(-20.0, 20.0).into_iter().step_by(211).collect();
            for level in levels() {
                $(same_everywhere(level, &x32, $formula, |x| x.to_bits().into());)*
                $(same_everywhere(level, &x64, $formula, |x| x.to_bits());)*
            }
        }

        #[test]
        fn fused_levels_agree_to_the_bit() {
            let x32: Vec<f32> = points32().into_iter().step_by(16).collect();
            let x64 = points64(-20.0, 20.0);
            let fused: Vec<Level> = levels().filter(|&level| level > Level::Baseline || BASELINE_FMA).collect();
            for pair in fused.windows(2) {
                $(
                    let [a, b] = [pair[0], pair[1]].map(|level| at_level(level, [&x32], $formula));
                    assert!(a.iter().zip(&b).all(|(a, b)| error32(*a, (*b).into()) == 0.0));
                    let [a, b] = [pair[0], pair[1]].map(|level| at_level(level, [&x64], $formula));
                    assert!(a.iter().zip(&b).all(|(a, b)| error64(*a, *b) == 0.0));
                )*
            }
        }
    };
}

/// Checks values alone, and in the vector and the scalar part of a longer slice.
fn same_everywhere<T: Math + Storable, F: Lanewise<1, 0, 1> + Copy>(
    level: Level,
    x: &[T],
    f: F,
    bits: fn(T) -> u64,
) {
    let together = at_level(level, [x], f);
    for (&x, &y) in x.iter().zip(&together) {
        let alone = at_level(level, [&[x]], f)[0];
        assert!(
            bits(alone) == bits(y) || alone.is_nan() && y.is_nan(),
            "{level:?}: f({x:?}) = {y:?} and {alone:?}"
        );
    }
}

fn softplus_by_pxfm(x: f64) -> f64 {
    x.max(0.0) + pxfm::f_log1p(pxfm::f_exp(-x.abs())) + if x.is_nan() { x } else { 0.0 }
}

/// Far out the reference gives NaN.
fn digamma_by_pxfm(x: f64) -> f64 {
    match x {
        0.0 => -x.recip(),
        1e20.. => pxfm::f_log(x),
        _ => pxfm::f_digamma(x),
    }
}

fn lgamma_by_pxfm(x: f64) -> f64 {
    if x >= 1e20 { x * (pxfm::f_log(x) - 1.0) } else { pxfm::f_lgamma(x) }
}

/// `of` by reflection for a negative `x`, at least 1.
fn above_1(x: f64, of: fn(f64) -> f64) -> f64 {
    if x < 0.0 { of(-x).max(1.0) } else { 0.0 }
}

accurate! {
    exp Exp (pxfm::f_exp, Some(Exact::exp)), -746.0..710.0;
    exp_m1 ExpM1 (pxfm::f_expm1, Some(Exact::exp_m1)), -40.0..710.0;
    ln Ln (pxfm::f_log, Some(Exact::ln)), 0.0..100.0;
    ln_1p Ln1p (pxfm::f_log1p, Some(Exact::ln_1p)), -1.0..100.0;
    log2 Log2 (pxfm::f_log2, Some(Exact::log2)), 0.0..100.0;
    log10 Log10 (pxfm::f_log10, Some(Exact::log10)), 0.0..100.0;
    tanh Tanh (pxfm::f_tanh, Some(Exact::tanh)), -20.0..20.0;
    // Below -709 the first reference gives NaN.
    sigmoid Sigmoid
        (|x| if x < -40.0 { pxfm::f_exp(x) } else { pxfm::f_logistic(x) }, Some(Exact::sigmoid)),
        -746.0..40.0;
    softplus Softplus (softplus_by_pxfm, Some(Exact::softplus)), -746.0..40.0;
    erf Erf (pxfm::f_erf, Some(Exact::erf)), -6.0..6.0;
    // Of zeros the first reference gives positive results, as those of digamma.
    erfinv Erfinv
        (|x| if x == 0.0 { x } else { pxfm::f_erfinv(x) }, Some(Exact::erfinv)), -1.0..1.0;
    digamma Digamma (digamma_by_pxfm, Some(Exact::digamma)), -20.0..20.0,
        in units of |x| above_1(x, pxfm::f_log);
    lgamma Lgamma (lgamma_by_pxfm, Some(Exact::lgamma)), -20.0..20.0,
        in units of |x| above_1(x, lgamma_by_pxfm);
    sin Sin (pxfm::f_sin, Some(Exact::sin)), -1e6..1e6, up to ANGLE_MAX;
    cos Cos (pxfm::f_cos, Some(Exact::cos)), -1e6..1e6, up to ANGLE_MAX;
    tan Tan (pxfm::f_tan, Some(Exact::tan)), -1e6..1e6, up to ANGLE_MAX;
    atan Atan (pxfm::f_atan, Some(Exact::atan)), -100.0..100.0;
    asin Asin (pxfm::f_asin, Some(Exact::asin)), -1.0..1.0;
    acos Acos (pxfm::f_acos, Some(Exact::acos)), -1.0..1.0;
    // Of -0 the first reference gives 0.
    sinh Sinh
        (|x| if x == 0.0 { x } else { pxfm::f_sinh(x) }, Some(Exact::sinh)), -711.0..711.0;
    cosh Cosh (pxfm::f_cosh, Some(Exact::cosh)), -711.0..711.0;
    sqrt Sqrt (f64::sqrt, Some(Exact::sqrt)), 0.0..100.0;
    rsqrt Rsqrt (pxfm::f_rsqrt, Some(Exact::rsqrt)), 0.0..100.0;
    recip Recip (f64::recip, None), -100.0..100.0;
    abs Abs (f64::abs, None), -100.0..100.0;
    floor Floor (f64::floor, None), -100.0..100.0;
    ceil Ceil (f64::ceil, None), -100.0..100.0;
    round Round (f64::round_ties_even, None), -100.0..100.0;
    trunc Trunc (f64::trunc, None), -100.0..100.0;
    signum Signum (|x| if x == 0.0 { x } else { x.signum() }, None), -1.0..1.0;
}

/// Values that are exact, and angles without one; the tests above check those of [`PIVOTS`] within an ulp.
#[test]
fn exact_values() {
    fn all<T: Math + Storable, F: Lanewise<1, 0, 1> + Copy>(f: F, pairs: &[(f64, f64)]) {
        for (level, &(x, y)) in levels().flat_map(|level| pairs.iter().map(move |of| (level, of))) {
            // 19 elements: a whole vector and a rest at every level.
            for found in at_level(level, [&[T::lit(x); 19]], f) {
                let right = if y.is_nan() { found.is_nan() } else { found == T::lit(y) };
                assert!(right, "{level:?}: f({x}) = {found:?}, not {y}");
            }
        }
    }
    fn both<F: Lanewise<1, 0, 1> + Copy>(f: F, pairs: &[(f64, f64)]) {
        all::<f32, F>(f, pairs);
        all::<f64, F>(f, pairs);
    }
    const INF: f64 = f64::INFINITY;
    const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
    let undefined = [(INF, f64::NAN), (-INF, f64::NAN), (f64::NAN, f64::NAN)];
    both(Sin, &undefined);
    both(Cos, &undefined);
    both(Tan, &undefined);
    both(Exp, &[(0.0, 1.0), (-0.0, 1.0), (800.0, INF), (-800.0, 0.0)]);
    both(Log2, &[(8.0, 3.0), (0.125, -3.0)]);
    both(Tanh, &[(INF, 1.0), (-INF, -1.0)]);
    both(Erfinv, &[(1.0, INF), (-1.0, -INF), (1.5, f64::NAN)]);
    both(Digamma, &[(0.0, -INF), (-0.0, INF), (-3.0, f64::NAN), (INF, INF), (-INF, f64::NAN)]);
    both(Lgamma, &[(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (-1e30, INF)]);
    both(Lgamma, &[(INF, INF), (-INF, INF), (f64::NAN, f64::NAN)]);
    both(Erf, &[(INF, 1.0), (-INF, -1.0)]);
    both(Atan, &[(INF, HALF_PI), (-INF, -HALF_PI)]);
    both(Asin, &[(1.0, HALF_PI), (-1.0, -HALF_PI)]);
    both(Acos, &[(-1.0, std::f64::consts::PI), (0.0, HALF_PI)]);
    both(Cosh, &[(0.0, 1.0), (-800.0, INF)]);
    both(Sigmoid, &[(0.0, 0.5), (800.0, 1.0), (-800.0, 0.0)]);
    both(Softplus, &[(800.0, 800.0), (-800.0, 0.0)]);
}

fn worst_of_all<F: Lanewise<1, 0, 1> + Copy>(f: F, to: Reference, max: f64) -> f64 {
    let mut worst = 0f64;
    // The other levels with a fused multiply-add agree bit for bit.
    let levels: Vec<Level> = levels().filter(|&level| level != Level::Avx2).collect();
    for start in (0..1u64 << 32).step_by(1 << 16) {
        let bits = start as u32..=(start + 0xffff) as u32;
        let within = |x: &f32| x.is_nan() || f64::from(x.abs()) <= max;
        let x: Vec<f32> = bits.map(f32::from_bits).filter(within).collect();
        let exact: Vec<f64> = x.iter().map(|&x| (to.rounded)(f64::from(x))).collect();
        let unit: Vec<f64> = x.iter().map(|&x| to.shrinks(x.into())).collect();
        for &level in &levels {
            for (i, y) in at_level(level, [&x], f).into_iter().enumerate() {
                worst = worst.max(error32(y, exact[i]) * unit[i]);
            }
        }
    }
    worst
}
