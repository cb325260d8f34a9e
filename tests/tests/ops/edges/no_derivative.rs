//! Points without a derivative: the gradient there is the convention of the docs, and a further
//! derivative is NaN.

use autograd_core::prelude::*;
use autograd_core::{GradOptions, grad_with, hessian};

fn gradient(f: impl Fn(&Tensor<f64>) -> Tensor<f64>, x: &[f64]) -> Vec<f64> {
    let x = Tensor::from(x.to_vec());
    x.set_stop_gradient(false);
    let recorded = GradOptions::new().create_graph(true);
    let once = grad_with(&[&f(&x)], &[&x], GradOptions::new()).unwrap().remove(0).unwrap();
    let again = grad_with(&[&f(&x)], &[&x], recorded).unwrap().remove(0).unwrap();
    assert_eq!(format!("{:?}", once.to_vec()), format!("{:?}", again.to_vec()));
    once.to_vec()
}

fn curvature(f: impl Fn(&Tensor<f64>) -> Tensor<f64>, x: &[f64]) -> Vec<f64> {
    hessian(|x| f(x), &Tensor::from(x.to_vec())).unwrap().to_vec()
}

#[test]
fn a_norm_at_zero() {
    assert_eq!(gradient(Tensor::norm, &[0.0, 0.0]), [0.0, 0.0]);
    assert!(curvature(Tensor::norm, &[0.0, 0.0]).iter().all(|h| h.is_nan()));
    // Elsewhere it is `(I - u u) / y`.
    let found = curvature(Tensor::norm, &[3.0, 4.0]);
    for (found, right) in found.iter().zip([0.128, -0.096, -0.096, 0.072]) {
        assert!((found - right).abs() < 1e-12, "{found}, not {right}");
    }
}

#[test]
fn the_deviation_of_equal_numbers() {
    let std = |x: &Tensor<f64>| x.std_axes([], 0);
    assert_eq!(gradient(std, &[2.0, 2.0, 2.0]), [0.0; 3]);
    assert!(curvature(std, &[2.0, 2.0, 2.0]).iter().all(|h| h.is_nan()));
    assert!(curvature(std, &[1.0, 2.0, 4.0]).iter().all(|h| h.is_finite()));
    // Row by row.
    let x = Tensor::from([[1.0, 1.0], [1.0, 3.0]]);
    x.set_stop_gradient(false);
    x.std_axes([1], 0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [0.0, 0.0, -0.5, 0.5]);
}
