//! The power of two numbers.

use super::*;

fn pow_at(level: Level, x: &[f64], y: &[f64]) -> (Vec<f32>, Vec<f64>) {
    let [x32, y32] = [x, y].map(|all| all.iter().map(|&x| x as f32).collect::<Vec<f32>>());
    (at_level(level, [&x32, &y32], Pow), at_level(level, [x, y], Pow))
}

fn assert_near(level: Level, [x, y, found]: [f64; 3], error: f64, most: f64) {
    assert!(error <= most, "{level:?}: {x:e}^{y:e} = {found:e}: {error} ulp");
}

#[test]
fn pow() {
    let mut random = Random(88_172_645_463_325_252);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..60_000 {
        let base = match i % 3 {
            0 => f64::from_bits(random.bits() >> 1),
            1 => random.within(0.5, 2.0),
            _ => 1.0 + random.within(-1.0, 1.0) * 2f64.powi(-(i % 50)),
        };
        let most = 746.0 / base.ln().abs().max(1e-300);
        x.push(base);
        y.push(if i % 2 == 0 { random.within(-16.0, 16.0) } else { random.within(-most, most) });
    }
    let rounded: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| pxfm::f_pow(x, y)).collect();
    let ends = |rounded: f64| rounded == 0.0 || rounded.is_infinite();
    let exact64: Vec<Option<Exact>> = (0..x.len())
        .map(|i| {
            let plain = x[i] == 0.0 || ends(rounded[i]) && (y[i] * x[i].ln()).abs() > 2000.0;
            let asked = x[i].is_finite() && !rounded[i].is_nan() && !plain;
            asked.then(|| Exact::from(x[i]).pow(Exact::from(y[i])))
        })
        .collect();
    let narrow = |x: f64| f64::from(x as f32);
    let exact32: Vec<f64> =
        x.iter().zip(&y).map(|(&x, &y)| pxfm::f_pow(narrow(x), narrow(y))).collect();
    for level in levels() {
        let (y32, y64) = pow_at(level, &x, &y);
        for i in 0..x.len() {
            let error = error_of(y64[i], rounded[i], exact64[i].as_ref());
            assert_near(level, [x[i], y[i], y64[i]], error, 0.92);
            let error = error32(y32[i], exact32[i]);
            assert_near(level, [narrow(x[i]), narrow(y[i]), y32[i].into()], error, 0.54);
        }
    }
}

#[test]
fn pow_of_special_values() {
    let some = [
        0.0,
        5e-324,
        1e-310,
        1e-45,
        1e-40,
        0.1,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        7.0,
        16_777_215.0,
        16_777_216.0,
        9_007_199_254_740_991.0,
        9_007_199_254_740_992.0,
        1e20,
        1e30,
        1e300,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    let all: Vec<f64> = some.iter().flat_map(|&x| [x, -x]).collect();
    let (x, y): (Vec<f64>, Vec<f64>) =
        all.iter().flat_map(|&x| all.iter().map(move |&y| (x, y))).unzip();
    for level in levels() {
        let (got32, got64) = pow_at(level, &x, &y);
        for i in 0..x.len() {
            let (x32, y32) = (x[i] as f32, y[i] as f32);
            let error = error32(got32[i], f64::from(x32.powf(y32)));
            assert_near(level, [x32, y32, got32[i]].map(f64::from), error, 1.0);
            let error = error64(got64[i], x[i].powf(y[i]));
            assert_near(level, [x[i], y[i], got64[i]], error, 1.0);
        }
    }
}

#[test]
fn whole_powers_are_exact() {
    for level in levels() {
        let (x, y): (Vec<f64>, Vec<f64>) =
            (-12..=12).flat_map(|x| (0..=6).map(move |y| (f64::from(x), f64::from(y)))).unzip();
        let (got32, got64) = pow_at(level, &x, &y);
        for i in 0..x.len() {
            let right = x[i].powi(y[i] as i32);
            let found = (got64[i], f64::from(got32[i]));
            assert_eq!(found, (right, right), "{level:?}: {}^{}", x[i], y[i]);
        }
    }
}
