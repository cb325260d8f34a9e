//! Rules that are right, wrong, and absent; `tests/engine/gradcheck.rs` has those that are wrong by 0.1 %.

use super::*;
use crate::error::Error;
use crate::graph::{Rule, Saved, finish};
use crate::ops::Float;
use std::cell::Cell;
use std::panic::Location;

fn random_data<T: Float>(shape: &[usize]) -> Tensor<T> {
    let mut data = vec![0.0; shape.iter().product()];
    Generator::new(7).fill_uniform(&mut data, -1.0, 1.0);
    Tensor::from_vec(shape, data.into_iter().map(T::from_f64).collect()).unwrap()
}

fn random_input(shape: &[usize]) -> Tensor<f64> {
    random_data(shape)
}

/// The sine with a rule that is off by a factor, and its own second derivative.
fn sine_off_by(x: &Tensor<f64>, factor: f64) -> Tensor<f64> {
    if x.stop_gradient() {
        return x.sin();
    }
    let value = x.detach().sin().read().into_owned();
    finish("sine", Location::caller(), &[x], value, || {
        Rule::new([Saved::input(0, x)], move |saved, dy: Tensor<f64>, _| {
            Ok([Some(dy * saved.tensor::<f64>()?.cos() * factor)])
        })
    })
}

#[test]
fn one_wrong_element_is_found_and_named() {
    let f = |t: &[Tensor<f64>]| {
        let right = t[0].sin();
        let wrong = sine_off_by(&t[0], 1.001);
        let mask = Tensor::<f64>::eye(5).narrow(0, 3, 1).gt_scalar(0.5);
        mask.where_else(&wrong, &right)
    };
    let error = gradcheck(f, &[random_input(&[1, 5])]).unwrap_err();
    assert!(error.to_string().contains("input 0, element [0, 3]"), "{error}");
}

#[test]
fn a_kink_is_distinguished_from_a_wrong_rule() {
    let kink =
        |f: fn(&[Tensor<f64>]) -> Tensor<f64>, at: f64| match gradcheck(f, &[Tensor::from(at)]) {
            Err(Error::GradientWrong { not_differentiable, .. }) => Some(not_differentiable),
            other => {
                other.unwrap();
                None
            }
        };
    assert_eq!(kink(|t| t[0].relu(), 0.0), Some(true));
    assert_eq!(kink(|t| t[0].floor(), 1.0), Some(true));
    assert_eq!(kink(|t| t[0].relu(), 0.5), None);
    assert_eq!(kink(|t| t[0].abs(), 0.0), None);
    assert_eq!(kink(|t| sine_off_by(&t[0], 1.001), 0.5), Some(false));
}

#[test]
fn what_is_not_used_has_no_gradient() {
    let inputs = [random_input(&[2]), random_input(&[3])];
    gradcheck(|t| t[0].exp(), &inputs).unwrap();
    gradgradcheck(|t| t[0].exp(), &inputs).unwrap();
    gradcheck(|_| Tensor::from(1.0), &inputs).unwrap();
    gradgradcheck(|_| Tensor::from(1.0), &inputs).unwrap();
    // A graph that is cut loses a gradient that differences find.
    assert!(gradcheck(|t| t[0].detach().exp(), &inputs).is_err());
    gradcheck(|t| t[0].exp(), &[Tensor::zeros([0, 3])]).unwrap();
    gradcheck(|_| Tensor::from(1.0), &[]).unwrap();
}

fn single(t: &AnyTensor) -> &Tensor<f32> {
    t.downcast_ref().expect("f32")
}

#[test]
fn a_kink_in_single_precision_is_distinguished() {
    let relu = |t: &[AnyTensor]| single(&t[0]).relu().into();
    gradcheck_any(relu, &[Tensor::from([0.5_f32, -0.5]).into()]).unwrap();
    let error = gradcheck_any(relu, &[Tensor::from([0.5_f32, 0.0]).into()]).unwrap_err();
    let kink = "input 0, element [1]";
    assert!(error.to_string().contains(kink), "{error}");
    assert!(matches!(error, Error::GradientWrong { not_differentiable: true, .. }), "{error}");
}

#[test]
fn right_rules_of_single_precision_pass() {
    let x: AnyTensor = random_data::<f32>(&[4, 3]).transpose().into();
    let w: AnyTensor = random_data::<f32>(&[4, 5]).into();
    let checks: [(&str, fn(&Tensor<f32>, &Tensor<f32>) -> Tensor<f32>); 8] = [
        ("matmul", |x, w| x.matmul(w).tanh()),
        ("softmax", |x, w| x.softmax(1).matmul(w)),
        ("log_softmax", |x, _| x.log_softmax(0)),
        ("exp", |x, w| x.sum_axes_keep([1]).exp() * w.narrow(0, 0, 3)),
        ("sqrt", |x, _| (x.square() + 1.0).sqrt()),
        ("mean", |x, _| x.gelu().mean()),
        ("quotient", |x, w| x.sigmoid() / (w.square().sum() + 1.0)),
        ("max", |x, _| x.max_axes([0])),
    ];
    for (name, f) in checks {
        let f = |t: &[AnyTensor]| f(single(&t[0]), single(&t[1])).into();
        let inputs = [x.clone(), w.clone()];
        if let Err(error) = gradcheck_any(f, &inputs).and_then(|()| gradgradcheck_any(f, &inputs)) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn integers_are_constants_and_have_no_gradient() {
    let index = Tensor::from([2_i64, 0, 2]);
    let select = |t: &[AnyTensor]| match t {
        [AnyTensor::Float64(x), AnyTensor::Int64(index)] => x.index_select(0, index).exp().into(),
        _ => panic!("{t:?}"),
    };
    let inputs = [random_input(&[3, 2]).into(), index.clone().into()];
    gradcheck_any(select, &inputs).unwrap();
    gradgradcheck_any(select, &inputs).unwrap();
    let error = gradcheck_any(|t| t[1].clone(), &inputs).unwrap_err();
    let end = "the function gives a tensor of int64, without a gradient";
    assert!(error.to_string().ends_with(end), "{error}");
    gradcheck_any(|_| Tensor::from(1.0).into(), &[index.into()]).unwrap();
}

#[test]
fn a_function_that_changes_is_refused() {
    let calls = Cell::new(0.0);
    let next = |by: f64| {
        calls.set(calls.get() + by);
        calls.get()
    };
    let error = gradcheck(|t| &t[0] * next(1.0), &[random_input(&[2])]).unwrap_err();
    assert!(error.to_string().contains("gives other results"), "{error}");
    let rule = |t: &[Tensor<f64>]| sine_off_by(&t[0], next(1.0));
    let error = gradcheck(rule, &[random_input(&[2])]).unwrap_err();
    assert!(error.to_string().contains("gives other gradients"), "{error}");
}

#[test]
fn forward_mode_is_checked_of_a_constant_of_nothing_and_at_a_kink() {
    jvpcheck(|_| Tensor::from(1.0), &[random_input(&[3, 4])]).unwrap();
    jvpcheck(|t| t[0].exp(), &[Tensor::zeros([0, 3])]).unwrap();
    let error = jvpcheck(|t| t[0].relu(), &[Tensor::from([0.0])]).unwrap_err();
    assert!(error.to_string().contains("not differentiable here"), "{error}");
}
