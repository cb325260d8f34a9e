//! The order of the walk, as users see it: each op is visited once, with all that comes to it.

use autograd_core::prelude::*;
use autograd_core::{BackwardOptions, GradOptions, backward, grad_with};

fn leaf<const N: usize>(data: [f64; N]) -> Tensor<f64> {
    let x = Tensor::from(data.to_vec());
    x.set_stop_gradient(false);
    x
}

#[test]
fn an_output_put_together_again_is_waited_for() {
    // Nobody holds the exponential but the product, until a recorded backward reads it: then there
    // are two ways to it, and both must have come before it is visited.
    let x = leaf([0.1, 0.7]);
    let factors = [3.0, -2.0];
    let loss = ((&x * 2.0).exp() * &Tensor::from(factors.to_vec())).sum();
    let options = GradOptions::new().create_graph(true);
    let gradient = grad_with(&[&loss], &[&x], options).unwrap().remove(0).unwrap();
    let roots = [loss.into(), gradient.sum().into()];
    backward(&roots, &[None, None], BackwardOptions::new()).unwrap();
    // loss = c e^2x, its gradient 2 c e^2x, and that one's 4 c e^2x.
    let found = x.grad().unwrap().to_vec();
    for ((found, x), c) in found.into_iter().zip([0.1_f64, 0.7]).zip(factors) {
        let expected = 6.0 * c * (2.0 * x).exp();
        assert!((found - expected).abs() < 1e-12 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn an_op_of_one_consumer_and_a_seed_of_its_own_is_visited_once() {
    let x = leaf([0.5]);
    let inner = &x * 3.0;
    let outer = (inner.clone() * 2.0).square();
    backward(&[outer.into(), inner.into()], &[None, None], BackwardOptions::new()).unwrap();
    // 36 x^2 and 3 x.
    assert_eq!(x.grad().unwrap().to_vec(), [72.0 * 0.5 + 3.0]);
}

#[test]
fn a_wide_sum_of_temporaries_adds_up_in_one_order() {
    let sum = || {
        let x = leaf([0.1, 0.2, 0.3]);
        let mut sum = &x * 0.7;
        for i in 1..1000 {
            sum = (&x * f64::from(i)).tanh() + sum;
        }
        sum.sum().backward().unwrap();
        x.grad().unwrap().to_vec()
    };
    let first = sum();
    let expected: f64 =
        0.7 + (1..1000).map(f64::from).map(|i| i * (1.0 - (0.1 * i).tanh().powi(2))).sum::<f64>();
    assert!((first[0] - expected).abs() < 1e-9 * expected, "{} {expected}", first[0]);
    assert_eq!(first, sum());
}
