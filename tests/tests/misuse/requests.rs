//! Gradients that are asked for where there are none, twice, or on another thread.

use autograd_core::prelude::*;
use autograd_core::{BackwardOptions, Error, GradOptions, backward, grad, grad_with};
use support::{gradient, leaf};

use crate::run::{text, usable};
use crate::values::Mul;

pub(crate) fn a_hook_on_what_wants_no_gradient() -> String {
    text(Tensor::from([1.0]).register_hook(|_: &Tensor<f64>| Ok(None)))
}

pub(crate) fn a_gradient_kept_by_hand_of_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message = text(x.set_grad(Some(&Tensor::zeros([3]))));
    usable(&[&x]);
    message
}

pub(crate) fn a_gradient_with_respect_to_what_is_not_used() -> String {
    let (x, z) = (leaf(&[1.0]), leaf(&[2.0]));
    let y = Mul::apply(&x, &x);
    let message = text(grad(&[&y], &[&z]));
    usable(&[&x, &z]);
    message
}

pub(crate) fn a_gradient_with_respect_to_what_wants_none() -> String {
    let (x, z) = (leaf(&[1.0]), Tensor::from([2.0]));
    let y = Mul::apply(&x, &z);
    let message = text(grad(&[&y], &[&z]));
    usable(&[&x]);
    message
}

pub(crate) fn the_gradient_of_a_tensor_by_itself() {
    let x = leaf(&[1.0]);
    let y = Mul::apply(&x, &x);
    assert_eq!(grad(&[&y], &[&y]).unwrap()[0].item(), 1.0);
}

pub(crate) fn one_output_twice_in_a_backward() -> String {
    let x = leaf(&[3.0]);
    let y = Mul::apply(&x, &x);
    let outputs = [y.clone().into(), y.into()];
    let message = text(backward(&outputs, &[None, None], BackwardOptions::new()));
    usable(&[&x]);
    message
}

pub(crate) fn a_graph_walked_and_dropped_on_another_thread() {
    let x = leaf(&[2.0]);
    let y = Mul::apply(&x, &x);
    std::thread::spawn(move || y.backward().unwrap()).join().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

pub(crate) fn every_gradient_freed_before_it_is_asked_for() -> String {
    let x = leaf(&[1.0]);
    let y = Mul::apply(&x, &x);
    grad(&[&y], &[&x]).unwrap();
    let again: Result<_, Error> = grad_with(&[&y], &[&x], GradOptions::new());
    let message = text(again);
    usable(&[&x]);
    message
}

pub(crate) fn a_backward_of_a_loss_without_a_graph() -> String {
    let x = leaf(&[1.0]);
    Mul::apply(&x, &x).detach().backward().unwrap();
    let message = text(x.try_grad());
    usable(&[&x]);
    message
}
