//! Functions of two numbers: all pairs of special numbers, and random ones.

use super::*;
use crate::formula::binary_functions;

/// The largest errors that the table states.
fn stated(formula: &str) -> [f64; 2] {
    macro_rules! figures {
        ($(
            $(#[$doc:meta])*
            $method:ident $variant:ident $name:ident [$e32:literal, $e64:literal, $($example:tt)*]
            |$a:ident, $b:ident| $v:expr, $rule:tt;
        )*) => {
            match formula {
                $(stringify!($variant) => [$e32, $e64],)*
                _ => panic!("{formula} is not in the table"),
            }
        };
    }
    binary_functions! { figures }
}

fn pairs() -> Vec<[f64; 2]> {
    let positive =
        PIVOTS.iter().copied().chain([0.0, 1e-40, 3e-310, 1e-20, 0.75, 3.0, 1e20, 2e154]);
    let special: Vec<f64> = positive.flat_map(|x| [x, -x]).collect();
    let both = |&a: &f64| special.iter().map(move |&b| [a, b]).collect::<Vec<_>>();
    let mut pairs: Vec<[f64; 2]> = special.iter().flat_map(both).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..SAMPLES {
        pairs.push([f64::from_bits(random.bits()), f64::from_bits(random.bits())]);
        pairs.push([random.within(-5.0, 5.0), random.within(-5.0, 5.0)]);
        let a = random.within(-1e3, 1e3);
        pairs.push([a, a * random.within(0.999, 1.001)]);
    }
    pairs
}

/// A result to f64's precision, and one with more digits, asked where the first is finite and not 0.
struct Reference {
    rounded: fn(f64, f64) -> f64,
    exact: fn(Exact, Exact) -> Exact,
    /// Whether errors are in units of the larger argument if that is larger than the result.
    of_arguments: bool,
}

fn check<F: Lanewise<2, 0, 1> + Copy>(name: &str, f: F, to: &Reference) {
    let pairs = pairs();
    let [most32, most64] = stated(name);
    let [a, b] = [0, 1].map(|k| pairs.iter().map(|pair| pair[k]).collect::<Vec<f64>>());
    let [a32, b32] = [&a, &b].map(|all| all.iter().map(|&x| x as f32).collect::<Vec<f32>>());
    let shrinks = |y: f64, a: f64, b: f64| {
        let largest = a.abs().max(b.abs());
        if to.of_arguments && y.abs() < largest { (y.abs() / largest).max(1e-300) } else { 1.0 }
    };
    let mut worst = [(0.0, String::new()), (0.0, String::new())];
    let mut see = |kind: usize, error: f64, what: &dyn Fn() -> String| {
        if error > worst[kind].0 {
            worst[kind] = (error, what());
        }
    };
    for level in levels() {
        for ((&a, &b), y) in a32.iter().zip(&b32).zip(at_level(level, [&a32, &b32], f)) {
            let (x, z) = (f64::from(a), f64::from(b));
            let exact = (to.rounded)(x, z);
            see(0, error32(y, exact) * shrinks(exact, x, z), &|| {
                format!("{level:?}: {name}({a:e}f32, {b:e}) = {y:e}, not {exact:e}")
            });
        }
        for ((&a, &b), y) in a.iter().zip(&b).zip(at_level(level, [&a, &b], f)) {
            let rounded = (to.rounded)(a, b);
            let finite = [a, b, rounded].iter().all(|x| x.is_finite() && *x != 0.0);
            let exact = finite.then(|| (to.exact)(Exact::from(a), Exact::from(b)));
            let error = error_of(y, rounded, exact.as_ref()) * shrinks(rounded, a, b);
            see(1, error, &|| format!("{level:?}: {name}({a:e}, {b:e}) = {y:e}, not {rounded:e}"));
        }
    }
    let within = worst[0].0 <= most32 && worst[1].0 <= most64;
    assert!(within, "{worst:?}, stated are {most32} and {most64}");
}

fn larger(a: Exact, b: Exact) -> [Exact; 2] {
    if a.near() >= b.near() { [a, b] } else { [b, a] }
}

#[test]
fn hypot() {
    let rounded = |a: f64, b: f64| match a.is_infinite() || b.is_infinite() {
        true => f64::INFINITY,
        false => pxfm::f_hypot(a, b),
    };
    let exact = |a: Exact, b: Exact| (a * a + b * b).sqrt();
    check("Hypot", Hypot, &Reference { rounded, exact, of_arguments: false });
}

#[test]
fn atan2() {
    let exact = |y: Exact, x: Exact| {
        let magnitude = |x: Exact| if x.near() < 0.0 { -x } else { x };
        let angle = (magnitude(y) / magnitude(x)).atan();
        let pi = Exact::from(-1.0).acos();
        let angle = if x.near() < 0.0 { pi - angle } else { angle };
        if y.near() < 0.0 { -angle } else { angle }
    };
    // The reference loses the sign of a result that underflows.
    let rounded = |y: f64, x: f64| pxfm::f_atan2(y, x).copysign(y);
    check("Atan2", Atan2, &Reference { rounded, exact, of_arguments: false });
}

#[test]
fn logaddexp() {
    let rounded = |a: f64, b: f64| match a == b {
        true => a + std::f64::consts::LN_2,
        false if a.is_nan() || b.is_nan() => f64::NAN,
        false => a.max(b) + pxfm::f_log1p(pxfm::f_exp(-(a - b).abs())),
    };
    let exact = |a: Exact, b: Exact| {
        let [large, small] = larger(a, b);
        let apart = small - large;
        // Beyond, the sum is the larger argument.
        if apart.near() < -700.0 { large } else { large + apart.exp().ln_1p() }
    };
    check("LogAddExp", LogAddExp, &Reference { rounded, exact, of_arguments: true });
}

#[test]
fn xlogy() {
    let rounded = |a: f64, b: f64| if a == 0.0 && !b.is_nan() { 0.0 } else { a * pxfm::f_log(b) };
    let exact = |a: Exact, b: Exact| a * b.ln();
    check("Xlogy", Xlogy, &Reference { rounded, exact, of_arguments: false });
}

/// Values by Python's definition, with the sign of the divisor.
#[test]
fn remainder() {
    const INF: f64 = f64::INFINITY;
    let cases = [
        [5.0, 3.0, 2.0],
        [-5.0, 3.0, 1.0],
        [5.0, -3.0, -1.0],
        [-5.0, -3.0, -2.0],
        [6.0, 3.0, 0.0],
        [-6.0, 3.0, 0.0],
        [6.0, -3.0, -0.0],
        [1e15, 0.75, 0.25],
        [1.0, INF, 1.0],
        [-1.0, INF, INF],
        [INF, 2.0, f64::NAN],
        [1.0, 0.0, f64::NAN],
        [f64::NAN, 1.0, f64::NAN],
    ];
    for (level, [a, b, y]) in levels().flat_map(|level| cases.map(|case| (level, case))) {
        for found in at_level(level, [&[a; 19], &[b; 19]], Remainder) {
            assert_eq!(error64(found, y), 0.0, "{level:?}: {a} {b} {found} {y}");
        }
    }
    // Exact in f64 for numbers of f32.
    let rounded = |a: f64, b: f64| {
        let rest = a % b;
        if rest == 0.0 {
            rest.copysign(b)
        } else if (rest < 0.0) == (b < 0.0) {
            rest
        } else {
            rest + b
        }
    };
    let pairs = pairs();
    let [a, b] = [0, 1].map(|k| pairs.iter().map(|pair| pair[k] as f32).collect::<Vec<f32>>());
    for level in levels() {
        for ((&a, &b), y) in a.iter().zip(&b).zip(at_level(level, [&a, &b], Remainder)) {
            let exact = rounded(a.into(), b.into());
            let error = error32(y, exact);
            assert!(
                error <= 0.5,
                "{level:?}: remainder({a:e}, {b:e}) = {y:e}, not {exact:e}: {error}"
            );
        }
    }
}
