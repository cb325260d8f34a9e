//! Limits at infinity, and NaN that must not be hidden.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program, gradients};
use autograd_core::{DType, Float, GradOptions, grad_with, jvp};

const INF: f64 = f64::INFINITY;

/// Value and gradient, with and without a recorded backward, for few and for many elements.
#[track_caller]
fn check<T: Float>(f: fn(&Tensor<T>) -> Tensor<T>, x: &[f64], y: &[f64], dx: &[f64]) {
    let at = |x: &[f64]| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>();
    for copies in [1, 100, 6000] {
        let input = Tensor::from(at(x).repeat(copies)).reshape([copies, x.len()]);
        for create_graph in [false, true] {
            input.set_stop_gradient(false);
            let found = f(&input);
            let options = GradOptions::new().create_graph(create_graph);
            let grad = grad_with(&[&found.sum()], &[&input], options).unwrap().remove(0).unwrap();
            same(&found, y);
            same(&grad, dx);
        }
        let ones = Tensor::ones(input.shape());
        let (_, tangent) = jvp(|x| f(&x[0]), &[input.detach()], &[ones]).unwrap();
        if y.len() == x.len() {
            same(&tangent, dx);
        }
    }
}

#[track_caller]
fn same<T: Float>(found: &Tensor<T>, right: &[f64]) {
    for (i, found) in found.to_vec().into_iter().map(T::into_f64).enumerate() {
        let right = right[i % right.len()];
        let close = (found - right).abs() <= 1e-6 * right.abs().max(1.0);
        assert!(
            close || found == right || found.is_nan() && right.is_nan(),
            "{found}, not {right}"
        );
    }
}

macro_rules! both {
    ($(|$x:ident| $y:expr, $at:expr, $value:expr, $slope:expr;)*) => {$(
        check::<f64>(|$x| $y, &$at, &$value, &$slope);
        check::<f32>(|$x| $y, &$at, &$value, &$slope);
    )*};
}

#[test]
fn functions_at_infinity() {
    let nan = f64::NAN;
    both! {
        |x| x.silu(), [-INF, INF, nan, -1e30, 1e30, 0.0], [0.0, INF, nan, 0.0, 1e30, 0.0],
            [0.0, 1.0, nan, 0.0, 1.0, 0.5];
        |x| x.gelu(), [-INF, INF, nan, -1e30, 1e30, 0.0], [0.0, INF, nan, 0.0, 1e30, 0.0],
            [0.0, 1.0, nan, 0.0, 1.0, 0.5];
        |x| x.softplus(), [-INF, INF, nan], [0.0, INF, nan], [0.0, 1.0, nan];
        |x| x.sigmoid(), [-INF, INF, nan], [0.0, 1.0, nan], [0.0, 0.0, nan];
        |x| x.tanh(), [-INF, INF, nan], [-1.0, 1.0, nan], [0.0, 0.0, nan];
        |x| x.elu(1.0), [-INF, INF, nan], [-1.0, INF, nan], [0.0, 1.0, nan];
        |x| x.erf(), [-INF, INF, nan], [-1.0, 1.0, nan], [0.0, 0.0, nan];
        |x| x.erfinv(), [-1.0, 1.0, nan], [-INF, INF, nan], [INF, INF, nan];
        |x| x.lgamma(), [-INF, INF, nan, 0.0, -1.0], [INF, INF, nan, INF, INF],
            [nan, INF, nan, -INF, nan];
        |x| x.digamma(), [-INF, INF, nan, 0.0, -1.0], [nan, INF, nan, -INF, nan],
            [nan, 0.0, nan, INF, INF];
        |x| x.nan_to_num(2.0), [-INF, INF, nan], [-INF, INF, 2.0], [1.0, 1.0, 0.0];
    }
}

#[test]
fn logsumexp_at_infinity() {
    let nan = f64::NAN;
    both! {
        |x| x.logsumexp([1]), [-INF, -INF], [-INF], [0.0, 0.0];
        |x| x.logsumexp([1]), [INF, 1.0], [INF], [1.0, 0.0];
        |x| x.logsumexp([1]), [INF, 1.0, INF], [INF], [0.5, 0.0, 0.5];
        |x| x.logsumexp([1]), [-INF, 1.0], [1.0], [0.0, 1.0];
        |x| x.logsumexp([1]), [nan, 1.0], [nan], [nan, nan];
        |x| x.logsumexp([1]), [1e30, 1e30], [1e30], [0.5, 0.5];
    }
    // Rows of different kinds in one tensor.
    let x = Tensor::from([[-INF, -INF], [0.0, 0.0], [INF, 0.0]]);
    x.set_stop_gradient(false);
    let y = x.logsumexp([1]);
    assert_eq!(y.to_vec(), [-INF, 2_f64.ln(), INF]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.0, 0.5, 0.5, 1.0, 0.0]);
}

#[test]
fn a_hidden_markov_model_in_logarithms() {
    // An unreachable state stays impossible, and causes no NaN.
    let transition = Tensor::from([[0.0, -INF], [-INF, -INF]]);
    transition.set_stop_gradient(false);
    let start = Tensor::from([[0.0], [-INF]]);
    let forward = (&transition + &start).logsumexp([0]);
    let total = forward.logsumexp([]);
    assert_eq!(total.item(), 0.0);
    total.backward().unwrap();
    assert_eq!(transition.grad().unwrap().to_vec(), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn binary_cross_entropy_at_infinity() {
    for (x, t, loss, dx) in [
        (INF, 1.0, 0.0, 0.0),
        (INF, 0.0, INF, 1.0),
        (-INF, 0.0, 0.0, 0.0),
        (-INF, 1.0, INF, -1.0),
        (1e300, 1.0, 0.0, 0.0),
        (-1e300, 0.0, 0.0, 0.0),
        (0.0, 0.25, 2_f64.ln(), 0.25),
        (1.0, 0.25, 1_f64.exp().ln_1p() - 0.25, 1.0 / (1.0 + (-1_f64).exp()) - 0.25),
        (f64::NAN, 1.0, f64::NAN, f64::NAN),
    ] {
        let f = |x: &Tensor<f64>, t: &Tensor<f64>| x.binary_cross_entropy_with_logits(t);
        let (x, t) = (Tensor::from([x]), Tensor::from([t]));
        for create_graph in [false, true] {
            x.set_stop_gradient(false);
            let y = f(&x, &t);
            let options = GradOptions::new().create_graph(create_graph);
            let grad = grad_with(&[&y], &[&x], options).unwrap().remove(0).unwrap();
            same(&y, &[loss]);
            same(&grad, &[dx]);
        }
        let program = Program::new();
        let data = |name: &str| program.data(name, [1], DType::Float64).unwrap();
        let vars = [data("x"), data("t")];
        vars[0].set_stop_gradient(false);
        let traced = program.trace(move |x: &Tensor<f64>, t: &Tensor<f64>| f(x, t));
        let y = traced.x([&vars[0], &vars[1]]).call().unwrap();
        let grad = gradients(&[&y], &[&vars[0]]).unwrap().remove(0).unwrap();
        let feed: [(&str, &dyn autograd_core::static_graph::Feed); 2] = [("x", &x), ("t", &t)];
        let run = Executor::new().run(&program, &feed, &[&y, &grad]).unwrap();
        same(run[0].downcast_ref::<f64>().unwrap(), &[loss]);
        if loss.is_finite() {
            same(run[1].downcast_ref::<f64>().unwrap(), &[dx]);
        }
    }
}

#[test]
fn normalising_a_constant() {
    // 0 / 0, as documented; zeros with `eps`.
    let x = Tensor::<f64>::full([4], 2.5);
    assert!(x.normalize([], 0.0).to_vec().iter().all(|y| y.is_nan()));
    assert_eq!(x.normalize([], 1e-5).to_vec(), [0.0; 4]);
}

#[test]
fn a_remainder_of_an_infinite_divisor() {
    let found = |create_graph| {
        let [a, b] = [[1.0, -1.0, 1.0, -1.0, 0.0], [-INF, INF, INF, -INF, INF]].map(Tensor::from);
        b.set_stop_gradient(false);
        let options = GradOptions::new().create_graph(create_graph);
        grad_with(&[&a.remainder(&b).sum()], &[&b], options).unwrap().remove(0).unwrap()
    };
    // `-floor(a / b)` for a very large `b`.
    for db in [found(false), found(true)] {
        same(&db, &[1.0, 1.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn cross_entropy_of_an_infinite_logit() {
    let nan = f64::NAN;
    both! {
        |x| x.cross_entropy(&Tensor::from(vec![0; x.shape()[0]])) * x.shape()[0] as f64,
            [0.0, INF], [INF], [nan, nan];
    }
    // Rows of different kinds in one tensor.
    let x = Tensor::from([[0.0, 0.0], [INF, 0.0], [-INF, 0.0]]);
    for create_graph in [false, true] {
        x.set_stop_gradient(false);
        let loss = x.cross_entropy(&Tensor::from([0, 1, 1])) * 3.0;
        let options = GradOptions::new().create_graph(create_graph);
        let dx = grad_with(&[&loss], &[&x], options).unwrap().remove(0).unwrap();
        let dx = dx.to_vec();
        assert_eq!(dx[..2], [-0.5, 0.5]);
        assert!(dx[2].is_nan() && dx[3].is_nan(), "{dx:?}");
        assert_eq!(dx[4..], [0.0, 0.0]);
    }
}

#[test]
fn second_derivatives_of_inverse_functions_near_zero() {
    for f in [Tensor::<f64>::asin, Tensor::<f64>::acos] {
        let x = Tensor::from([1e-20, 1e-10]);
        x.set_stop_gradient(false);
        let options = GradOptions::new().create_graph(true);
        let slope = grad_with(&[&f(&x).sum()], &[&x], options).unwrap().remove(0).unwrap();
        slope.square().sum().backward().unwrap();
        let found = x.grad().unwrap().to_vec();
        for (found, right) in found.iter().zip([2e-20, 2e-10]) {
            assert!((found / right - 1.0).abs() < 1e-12, "{found:e}, not {right:e}");
        }
    }
}
