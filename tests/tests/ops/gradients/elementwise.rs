//! Functions of one tensor, element by element.

use autograd_core::Tensor;

use super::{check, check_layouts, sample};

type Unary = fn(&Tensor<f64>) -> Tensor<f64>;

/// The domain on which each function is smooth.
const FUNCTIONS: &[(&str, Unary, f64, f64)] = &[
    ("neg", Tensor::neg, -2.0, 2.0),
    ("abs above 0", Tensor::abs, 0.1, 2.0),
    ("abs below 0", Tensor::abs, -2.0, -0.1),
    ("signum", Tensor::signum, 0.1, 2.0),
    ("step", Tensor::step, -2.0, -0.1),
    ("floor", Tensor::floor, 1.1, 1.9),
    ("ceil", Tensor::ceil, 1.1, 1.9),
    ("round", Tensor::round, 1.6, 2.4),
    ("square", Tensor::square, -2.0, 2.0),
    ("sqrt", Tensor::sqrt, 0.2, 3.0),
    ("rsqrt", Tensor::rsqrt, 0.3, 3.0),
    ("recip", Tensor::recip, 0.5, 3.0),
    ("recip below 0", Tensor::recip, -3.0, -0.5),
    ("exp", Tensor::exp, -2.0, 2.0),
    ("exp_m1", Tensor::exp_m1, -2.0, 2.0),
    ("ln", Tensor::ln, 0.2, 3.0),
    ("ln_1p", Tensor::ln_1p, -0.5, 3.0),
    ("log2", Tensor::log2, 0.2, 3.0),
    ("log10", Tensor::log10, 0.2, 3.0),
    ("sin", Tensor::sin, -4.0, 4.0),
    ("cos", Tensor::cos, -4.0, 4.0),
    ("tan", Tensor::tan, -1.2, 1.2),
    ("asin", Tensor::asin, -0.8, 0.8),
    ("acos", Tensor::acos, -0.8, 0.8),
    ("atan", Tensor::atan, -3.0, 3.0),
    ("sinh", Tensor::sinh, -2.0, 2.0),
    ("cosh", Tensor::cosh, -2.0, 2.0),
    ("tanh", Tensor::tanh, -2.0, 2.0),
    ("sigmoid", Tensor::sigmoid, -4.0, 4.0),
    ("softplus", Tensor::softplus, -4.0, 4.0),
    ("silu", Tensor::silu, -4.0, 4.0),
    ("erf", Tensor::erf, -2.0, 2.0),
    ("erfinv", Tensor::erfinv, -0.8, 0.8),
    ("digamma", Tensor::digamma, 0.4, 3.0),
    ("digamma below 0", Tensor::digamma, -2.7, -2.3),
    ("lgamma", Tensor::lgamma, 0.4, 3.0),
    ("lgamma below 0", Tensor::lgamma, -2.7, -2.3),
    ("relu above 0", Tensor::relu, 0.1, 2.0),
    ("relu below 0", Tensor::relu, -2.0, -0.1),
    ("gelu", Tensor::gelu, -3.0, 3.0),
    ("leaky_relu above 0", |x| x.leaky_relu(0.1), 0.1, 2.0),
    ("leaky_relu below 0", |x| x.leaky_relu(0.1), -2.0, -0.1),
    ("nan_to_num", |x| x.nan_to_num(0.5), -2.0, 2.0),
    ("elu above 0", |x| x.elu(1.3), 0.1, 2.0),
    ("elu below 0", |x| x.elu(1.3), -2.0, -0.1),
    ("contiguous", Tensor::contiguous, -2.0, 2.0),
    ("copy", Tensor::copy, -2.0, 2.0),
    ("cast", |x| x.cast::<f64>(), -2.0, 2.0),
];

#[test]
fn every_function_in_every_layout() {
    for &(name, f, low, high) in FUNCTIONS {
        check_layouts(name, f, low, high);
    }
}

#[test]
fn more_elements_than_one_block() {
    for &(name, f, low, high) in FUNCTIONS {
        check(name, |t| f(&t[0]), &[sample(&[2100], low, high)]);
    }
}

#[test]
fn operands_that_are_temporaries() {
    // An op may compute in the buffer of a temporary, unless the temporary is saved.
    for &(name, f, low, high) in FUNCTIONS {
        let x = sample(&[3, 5], low, high);
        check(name, |t| f(&(&t[0] * 1.0)) * f(&t[0]), &[x]);
    }
}

#[test]
fn what_is_not_chosen_changes_nothing() {
    type Case = (fn(&Tensor<f64>) -> Tensor<f64>, f64, f64, f64);
    let inf = f64::INFINITY;
    let loss = |x: &Tensor<f64>| x.smooth_l1_loss(&Tensor::zeros_like(x));
    // An argument with the value and the slope there.
    let cases: [Case; 13] = [
        (|x| x.leaky_relu(0.5), inf, inf, 1.0),
        (|x| x.leaky_relu(0.5), -inf, -inf, 0.5),
        (|x| x.leaky_relu(0.0), -3.0, -0.0, 0.0),
        (|x| x.leaky_relu(-2.0), -3.0, 6.0, -2.0),
        (|x| x.elu(2.0), inf, inf, 1.0),
        (|x| x.elu(2.0), -inf, -2.0, 0.0),
        (|x| x.elu(2.0), 1e300, 1e300, 1.0),
        (|x| x.elu(2.0), -1e-300, -2e-300, 2.0),
        (loss, inf, inf, 1.0),
        (loss, -inf, inf, -1.0),
        (loss, -1e300, 1e300, -1.0),
        (loss, 1.0, 0.5, 1.0),
        (loss, 0.0, 0.0, 0.0),
    ];
    for (f, x, value, slope) in cases {
        for n in [1, 100] {
            let x = Tensor::full([n], x);
            x.set_stop_gradient(false);
            let y = f(&x);
            y.sum().backward().unwrap();
            assert!(y.to_vec().iter().all(|&y| y == value), "{x}: {y}, not {value}");
            let dx = x.grad().unwrap() * (n / y.len()) as f64;
            let close = |dx: &f64| (dx - slope).abs() < 1e-12;
            assert!(dx.to_vec().iter().all(close), "{x}: {dx}, not {slope}");
        }
    }
    let all: [fn(&Tensor<f64>) -> Tensor<f64>; 3] = [|x| x.leaky_relu(0.5), |x| x.elu(2.0), loss];
    for f in all {
        assert!(f(&Tensor::from(f64::NAN)).item().is_nan());
    }
}

#[test]
fn a_zero_has_the_gradient_that_is_documented() {
    let slope = |f: Unary| {
        let x = Tensor::from(0.0);
        x.set_stop_gradient(false);
        f(&x).backward().unwrap();
        x.grad().unwrap().item()
    };
    assert_eq!(slope(Tensor::abs), 0.0);
    assert_eq!(slope(Tensor::relu), 0.0);
    assert_eq!(slope(|x| x.leaky_relu(0.1)), 0.1);
    assert_eq!(slope(|x| x.elu(0.5)), 0.5);
    assert_eq!(slope(Tensor::norm), 0.0);
    assert_eq!(slope(|x| x.clamp(0.0, 1.0)), 1.0);
    assert_eq!(slope(|x| x.maximum(Tensor::from(0.0))), 0.5);
    assert_eq!(slope(|x| x.pow(0.0)), 0.0);
    assert_eq!(slope(|x| x.pow(1.0)), 1.0);
    assert_eq!(slope(|x| x.pow(2.0)), 0.0);
    assert_eq!(slope(|x| x.pow(Tensor::from(0.0))), 0.0);
}
