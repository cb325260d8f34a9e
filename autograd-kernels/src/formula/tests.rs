//! Compiled formulas and their programs compute the same. The accuracy of single functions is tested beside
//! their kernels.

use super::compiled::{Compiled, Lanewise};
use super::lane::Lane;
use super::pass::{Formula, Operand, pass};
use super::program::{Program, Written};
use super::real::{Mask, Real};
use crate::array::math::ANGLE_MAX;
use crate::array::simd::{levels, with_level};
use crate::array::{Shape, Value};

fn both<F: Lanewise<1, 0, 1> + Copy>(f: F, x: &[f64]) -> [Vec<f64>; 2] {
    let compiled = Compiled::<F, 1, 0, 1>(f);
    let program: Program = compiled.program();
    [run(&compiled, x), run(&program, x)]
}

fn run(formula: &dyn Formula<f64>, x: &[f64]) -> Vec<f64> {
    let shape = Shape::from_slice(&[x.len()]);
    let value = Value::from_slice(shape.clone(), x);
    let operands = &mut [Operand::Ref(&value)];
    let found = pass(&shape, operands, &[], &[Some(shape.clone())], formula);
    found[0].as_ref().map(Value::to_vec).unwrap_or_default()
}

/// Numbers around the special points of all functions, more than a block of them.
fn points() -> Vec<f64> {
    let edges = [
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        2.5,
        700.0,
        -750.0,
        1e-310,
        ANGLE_MAX,
        3.0 * ANGLE_MAX,
        -1e22,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let spread = (0..2100).map(|i| (f64::from(i) - 1050.0) / 131.0);
    edges.into_iter().chain(spread).collect()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// A formula of one number as a type, which may have a plain parameter.
macro_rules! formula {
    ($name:ident $(($parameter:ident: $type:ty))? |$x:ident| $body:expr) => {
        #[derive(Clone, Copy)]
        struct $name $(($type))?;
        impl Lanewise<1, 0, 1> for $name {
            #[inline(always)]
            fn call<L: Lane>(&self, [$x]: [Real<L>; 1], []: [Mask<L>; 0]) -> [Real<L>; 1] {
                $(let Self($parameter) = *self;)?
                [$body]
            }
        }
    };
}

#[test]
fn an_angle_of_any_size_changes_no_result_beside_it() {
    macro_rules! check {
        ($($method:ident)*) => {$({
            formula! { F |x| x.$method() }
            let x = [points(), vec![3.0 * ANGLE_MAX, 1e22, f64::NAN, f64::INFINITY], points()].concat();
            let small: Vec<f64> = x.iter().map(|x| if x.abs() > ANGLE_MAX { 0.0 } else { *x }).collect();
            let alone = run(&Compiled::<F, 1, 0, 1>(F), &small);
            for found in both(F, &x) {
                for ((&x, y), alone) in x.iter().zip(found).zip(&alone) {
                    let right = if x.abs() > ANGLE_MAX { x.$method() } else { *alone };
                    assert!(same(y, right), "{}({x:e}) = {y:e}, not {right:e}", stringify!($method));
                }
            }
        })*};
    }
    for level in levels() {
        with_level(level, || {
            check! { sin cos tan }
        });
    }
}

#[test]
fn comparisons_arithmetic_and_masks_agree_in_every_lane() {
    formula! { Mixed |x| {
        let inside = (x.gt(-1.0) & x.le(1.0)) ^ x.eq(0.5) | x.ge(7.0) & !x.ne(7.5);
        let y = inside.select(x.powi(3) - 2.0 / x, x.mul_add(0.5, 3.0).min(x.square()));
        1.0 - x.is_nan().select(-4.0, y.max(x.abs().powf(0.3)).clamp(-20.0, 20.0)) * -x.step()
    } }
    let plain = |x: f64| {
        let inside = (x > -1.0 && x <= 1.0) != (x == 0.5) || (x >= 7.0 && x == 7.5);
        let y = if inside { x * x * x - 2.0 / x } else { (x * 0.5 + 3.0).min(x * x) };
        let y = y.max(x.abs().powf(0.3)).clamp(-20.0, 20.0);
        1.0 - if x.is_nan() { -4.0 } else { y } * -(f64::from(x > 0.0))
    };
    for level in levels() {
        with_level(level, || {
            for found in both(Mixed, &points()) {
                for (x, y) in points().into_iter().zip(found) {
                    let expected = plain(x);
                    let near = (y - expected).abs() <= 1e-12 * expected.abs();
                    assert!(
                        near || same(y, expected),
                        "{level:?}: f({x:e}) = {y:e}, not {expected:e}"
                    );
                }
            }
        });
    }
}

#[test]
fn powers_take_few_multiplications_and_all_exponents() {
    formula! { Power(n: i32) |x| x.powi(n) }
    for n in -9..10 {
        let x = [-1.5, -1.0, 0.0, 0.7, 2.0];
        for found in both(Power(n), &x) {
            for (x, y) in x.iter().zip(found) {
                let exact = x.powi(n);
                assert!(
                    (y - exact).abs() <= 4e-15 * exact.abs() || same(y, exact),
                    "{x}^{n} = {y}"
                );
            }
        }
    }
}

#[test]
fn a_large_angle_is_seen_through_a_comparison() {
    // The straight-line sine gives NaN there, which a comparison would hide.
    formula! { Sign |x| x.sin().gt(0.0).select(1.0, -1.0) }
    for found in both(Sign, &[1.0, -1.0, 1e9, 1e10, 2e15]) {
        let expected = [1.0, -1.0, 1e9_f64, 1e10, 2e15].map(|x: f64| x.sin().signum());
        assert_eq!(found, expected);
    }
}

#[test]
fn a_number_of_another_formula_is_reported() {
    let outcome = std::panic::catch_unwind(|| {
        let stray = std::cell::Cell::new(None);
        super::trace(1, 0, &mut |x, _| {
            stray.set(Some(x[0]));
            x.to_vec()
        });
        super::trace(1, 0, &mut |x, _| vec![x[0] + stray.get().unwrap_or(x[0])])
    });
    let panic = outcome.unwrap_err();
    assert!(panic.downcast_ref::<&str>().unwrap().contains("outside of that formula"));
    assert_eq!(run(&super::trace(1, 0, &mut |x, _| vec![x[0] + 1.0]), &[1.0]), [2.0]);
}

/// Beside the reference; its poles are those of digamma.
#[test]
fn trigamma_is_the_slope_of_digamma() {
    formula! { Trigamma |x| x.trigamma() }
    let spread = (1..2000).map(|i| (f64::from(i) - 700.5) / 37.0);
    let x: Vec<f64> = spread.chain([1e-300, -1e-9, 1e9, 1e300, -1e5 - 0.25]).collect();
    for found in both(Trigamma, &x) {
        for (x, y) in x.iter().zip(found) {
            let right = pxfm::f_trigamma(*x);
            assert!((y - right).abs() <= 4e-15 * right || y == right, "{x}: {y}, not {right}");
        }
    }
    let [found, _] = both(Trigamma, &[0.0, -2.0, f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(found[..3], [f64::INFINITY, f64::INFINITY, 0.0]);
    assert!(found[3].is_nan());
}
