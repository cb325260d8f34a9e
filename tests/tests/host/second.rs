//! The gradient of a backward.

use autograd_core::host::{Arg, Origin};
use autograd_core::prelude::*;
use autograd_core::{GradOptions, grad_with};

use super::ops::*;

fn leaf(numbers: &[f64]) -> Tensor<f64> {
    let leaf = Tensor::from(numbers.to_vec());
    leaf.set_stop_gradient(false);
    leaf
}

/// The gradient with respect to a saved output is that of backward's formula alone: the host's graph leads on.
#[test]
fn a_saved_output_has_a_gradient_of_its_own() {
    let x = Tensor::from([0.3_f32, -1.0, 2.0]);
    let (_, kept) = forward(CusTanh::EXPORT, &[tensor(x.clone())]);
    let (dy, along) = (Tensor::from([1.0_f32, 2.0, 3.0]), Tensor::from([0.5_f32, 1.0, -1.0]));
    let second = kept.second(&[Some(dy.clone().into())], &[], &[Some(along.clone().into())]);
    let second = second.expect("tanh has a second derivative");
    let y = x.tanh();
    let of_y = &along * &dy * -2.0 * &y;
    assert_eq!(numbers(second.saved[0].as_ref().expect("of y")), numbers(&of_y.into()));
    let of_dy = along * (1.0 - y.square());
    assert_eq!(numbers(second.grads[0].as_ref().expect("of dy")), numbers(&of_dy.into()));
}

/// A saved input's gradient is that of the recorded op, as is the gradient's.
#[test]
fn a_formula_has_a_second_gradient() {
    let (x, a) = (leaf(&[0.3, -1.0, 2.0]), leaf(&[1.0, 2.0, -0.5]));
    let on = Tensor::from(vec![true, false, true]);
    let dy = leaf(&[1.0, 2.0, 3.0]);
    let along = Tensor::from(vec![0.5, 1.0, -1.0]);
    let args = [tensor(x.detach()), tensor(a.detach()), tensor(on.clone()), Arg::Omitted];
    let (_, kept) = forward(Cubic::EXPORT, &args);
    let along = [Some(along.into()), None, None];
    let second = kept.second(&[Some(dy.detach().into())], &[], &along).expect("a derivative");
    let y = Cubic::apply(&x, &a, &on, 1.0);
    let options = GradOptions::new().seeds(vec![Some(dy.clone())]).create_graph(true);
    let dx = grad_with(&[&y], &[&x], options).expect("a gradient").remove(0).expect("of x");
    let options = GradOptions::new()
        .seeds(vec![along[0].clone().and_then(AnyTensor::downcast)])
        .allow_unused(true);
    let expected = grad_with(&[&dx], &[&x, &a, &dy], options).expect("gradients");
    for (expected, (position, origin)) in
        expected.iter().zip([(0, Origin::Input(0)), (1, Origin::Input(1))])
    {
        let at = kept.tensors().iter().position(|(of, _)| *of == origin);
        let found = at.and_then(|at| second.saved[at].clone());
        let expected = expected.clone().map(|grad| grad.to_vec());
        assert_eq!(found.map(|grad| numbers(&grad)), expected, "input {position}");
    }
    let expected = expected[2].clone().expect("of dy").to_vec();
    assert_eq!(numbers(second.grads[0].as_ref().expect("of dy")), expected);
}

#[test]
fn a_saved_intermediate_is_refused() {
    let x = Tensor::from([[1.0_f32, 2.0]]);
    let args = [tensor(x.clone()), tensor(Tensor::from(vec![0_i64])), Arg::Omitted];
    let (_, kept) = forward(Gate::EXPORT, &args);
    let origins: Vec<Origin> = kept.tensors().into_iter().map(|(origin, _)| origin).collect();
    assert_eq!(origins, [Origin::Input(0), Origin::Intermediate, Origin::Input(1)]);
    let some = || Some(AnyTensor::from(x.clone()));
    let error = refusal(kept.second(&[some()], &[], &[some(), None]));
    assert_eq!(
        error,
        "Gate: saved tensor 1 is neither an input nor an output of the op, so its own gradient \
         is not known and a second derivative through it would be wrong; save an input or an \
         output and compute the rest in backward, or save a constant as integers or bools"
    );
}

#[test]
fn an_op_may_be_differentiable_once() {
    let (_, kept) = forward(Once::EXPORT, &[tensor(Tensor::from([1.0]))]);
    let some = || Some(AnyTensor::from(Tensor::from([1.0])));
    assert!(kept.backward(&[some()], &[]).is_ok());
    let error = refusal(kept.second(&[some()], &[], &[some()]));
    assert!(error.starts_with("Once: its backward is `once_differentiable`"), "{error}");
}
