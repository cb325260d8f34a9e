//! Further ways: odd inputs and outputs, one tensor in several positions, nested calls. If a way is
//! harmless, the resulting numbers show that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, GradOptions, HookHandle, backward, grad, grad_with, is_grad_enabled,
};

use crate::run::{backward_reported, leaf, panicked, text, usable};

fn gradient(x: &Tensor<f64>) -> Vec<f64> {
    x.grad().expect("a gradient").to_vec()
}

#[py_layer]
impl Mul {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, w) = ctx.saved_tensor();
        (dy * w, dy * x)
    }
}

pub(crate) fn one_tensor_as_both_inputs() {
    let x = leaf(&[2.0, 3.0]);
    Mul::apply(&x, &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0, 6.0]);
}

pub(crate) fn no_elements_at_all() {
    let (x, w) = (leaf(&[]), leaf(&[]));
    Mul::apply(&x, &w).sum().backward().unwrap();
    assert_eq!([gradient(&x), gradient(&w)], [[], []] as [[f64; 0]; 2]);
}

pub(crate) fn inputs_that_broadcast() -> String {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0]));
    backward_reported(&Mul::apply(&x, &w), &[&x, &w])
}

/// Returns its saved gradient instead of a new one.
#[py_layer]
impl ReturnsSaved {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(w);
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (ctx.saved_tensor().clone(), dy.clone())
    }
}

pub(crate) fn a_saved_tensor_returned_as_the_gradient() {
    let (x, w) = (leaf(&[1.0]), leaf(&[3.0]));
    let seed = Tensor::from([7.0]);
    ReturnsSaved::apply(&x, &w).backward_with(&seed).unwrap();
    // The gradients are the leaves' own tensors: changes of them, or of the tensors they came from,
    // affect no other tensor.
    x.grad().unwrap().fill(100.0).unwrap();
    w.grad().unwrap().fill(200.0).unwrap();
    assert_eq!([w.item(), seed.item()], [3.0, 7.0]);
    no_grad().run(|| w.fill(5.0)).unwrap();
    seed.fill(6.0).unwrap();
    (&x * 1.0).backward().unwrap();
    assert_eq!([w.item(), seed.item()], [5.0, 6.0]);
    assert!(x.grad().unwrap().stop_gradient());
}

#[py_layer]
impl SumOf {
    fn forward(ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        let _ = ctx.needs_input_grad();
        xs.iter().fold(Tensor::zeros([1]), |sum, x| sum + *x)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone(); ctx.needs_input_grad().xs.len()]
    }
}

pub(crate) fn one_tensor_twice_in_a_list() {
    let x = leaf(&[2.0]);
    SumOf::apply(&[&x, &x, &x]).backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

pub(crate) fn an_empty_list() {
    let y = SumOf::apply(&[]);
    assert!(y.stop_gradient());
    assert_eq!(y.item(), 0.0);
}

#[py_layer]
impl Joined {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        xs[0] * 1.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone(); 3]
    }
}

pub(crate) fn list_of_gradients_too_long() -> String {
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    backward_reported(&Joined::apply(&[&a, &b]), &[&a, &b])
}

#[py_layer]
impl MaybeShifted {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        by: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        by.map_or_else(|| x * 1.0, |by| x + by)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>) {
        (dy.clone(), Some(dy.clone()))
    }
}

pub(crate) fn a_gradient_for_an_input_that_was_not_given() {
    let x = leaf(&[1.0]);
    MaybeShifted::apply(&x, None).backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}

#[py_layer]
impl Copies {
    type Attrs = usize;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, count: usize) -> Vec<Tensor<f64>> {
        ctx.set_attrs(count);
        let y = x * 1.0;
        vec![y; count]
    }

    fn backward(ctx: &BackwardContext<Self>, ds: &[Tensor<f64>]) -> Tensor<f64> {
        assert_eq!(ds.len(), *ctx.attrs());
        ds.iter().fold(Tensor::zeros([2]), |sum, d| sum + d)
    }
}

pub(crate) fn one_tensor_as_several_outputs() {
    let x = leaf(&[1.0, 2.0]);
    let ys = Copies::apply(&x, 3);
    (&ys[0] * 2.0 + &ys[2]).sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0, 3.0]);
}

pub(crate) fn no_output_in_the_list() {
    let x = leaf(&[1.0, 2.0]);
    assert!(Copies::apply(&x, 0).is_empty());
    usable(&[&x]);
}

/// Returns a tensor that is not an input but belongs to other code.
#[py_layer]
impl ReturnsOther {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        _x: &Tensor<f64>,
        #[stop_gradient] other: &Tensor<f64>,
    ) -> Tensor<f64> {
        other.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 10.0
    }
}

pub(crate) fn somebody_elses_tensor_returned() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let y = ReturnsOther::apply(&x, &w);
    assert!(w.is_leaf() && !w.stop_gradient(), "the tensor keeps its own state");
    (&y * 1.0).backward().unwrap();
    assert_eq!(gradient(&x), [10.0]);
    assert!(w.grad().is_none());
    usable(&[&w]);
}

/// Does things in forward that it should not.
#[py_layer]
impl Meddles {
    type Attrs = fn(&Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        now: fn(&Tensor<f64>),
        later: fn(&Tensor<f64>),
    ) -> Tensor<f64> {
        now(x);
        ctx.set_attrs(later);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        ctx.attrs()(dy);
        dy * 2.0
    }
}

fn nothing(_: &Tensor<f64>) {}

pub(crate) fn a_scope_forgotten_in_forward() {
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, |_| std::mem::forget(enable_grad()), nothing);
    assert!(is_grad_enabled());
    y.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    let y = no_grad().run(|| Meddles::apply(&x, |_| std::mem::forget(enable_grad()), nothing));
    assert!(is_grad_enabled() && y.stop_gradient());
}

pub(crate) fn a_whole_backward_inside_of_forward_and_backward() {
    fn train(_: &Tensor<f64>) {
        enable_grad().run(|| {
            let w = leaf(&[3.0]);
            Mul::apply(&w, &w).backward().unwrap();
            assert_eq!(gradient(&w), [6.0]);
        });
    }
    let x = leaf(&[1.0]);
    Meddles::apply(&x, train, train).backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

pub(crate) fn an_input_stopped_inside_of_forward() {
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, |x| x.set_stop_gradient(true), nothing);
    // A leaf that wants no gradient gets none; there is no other effect.
    let _ = y.sum().backward();
    assert!(x.grad().is_none_or(|grad| grad.item() == 2.0));
    x.set_stop_gradient(false);
    x.clear_grad();
    usable(&[&x]);
}

pub(crate) fn the_same_backward_from_inside_of_backward() -> String {
    static OUTPUT: Mutex<Option<Tensor<f64>>> = Mutex::new(None);
    static TOLD: Mutex<String> = Mutex::new(String::new());
    let x = leaf(&[1.0]);
    let y = Meddles::apply(&x, nothing, |_| {
        let output = OUTPUT.lock().unwrap().clone();
        if let Some(output) = output {
            *TOLD.lock().unwrap() = match output.backward() {
                Ok(()) => "it was not noticed".to_owned(),
                Err(error) => error.to_string(),
            };
        }
    });
    *OUTPUT.lock().unwrap() = Some(y.clone());
    y.backward().unwrap();
    *OUTPUT.lock().unwrap() = None;
    assert_eq!(gradient(&x), [2.0]);
    TOLD.lock().unwrap().clone()
}

pub(crate) fn a_hook_that_removes_itself() {
    let x = leaf(&[1.0]);
    let handle = Arc::new(Mutex::new(None::<HookHandle>));
    let own = Arc::clone(&handle);
    let hook = x.register_hook(move |grad| {
        if let Some(handle) = own.lock().unwrap().take() {
            let _ = handle.remove();
        }
        Ok(Some(grad * 2.0))
    });
    *handle.lock().unwrap() = Some(hook.unwrap());
    (&x * 1.0).backward().unwrap();
    (&x * 1.0).backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

pub(crate) fn a_hook_that_clears_the_gradient_it_feeds() {
    let x = leaf(&[1.0]);
    (&x * 4.0).backward().unwrap();
    let same = x.clone();
    let handle = x.register_hook(move |_| {
        same.clear_grad();
        Ok(None)
    });
    (&x * 2.0).backward().unwrap();
    let _ = handle.unwrap().remove();
    assert_eq!(gradient(&x), [2.0]);
    x.clear_grad();
}

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

pub(crate) fn forward_panics() -> String {
    let x = leaf(&[1.0]);
    let meddle = || Meddles::apply(&x, |x| panic!("no value for {}", x.item()), nothing);
    let message = panicked(meddle);
    assert!(is_grad_enabled());
    usable(&[&x]);
    message
}

pub(crate) fn an_op_applied_while_another_panics() {
    struct Applies(Tensor<f64>);
    impl Drop for Applies {
        fn drop(&mut self) {
            Mul::apply(&self.0, &self.0).sum().backward().unwrap();
        }
    }
    let x = leaf(&[2.0]);
    let held = Applies(x.clone());
    let caught = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
    assert_eq!(gradient(&x), [4.0]);
}

pub(crate) fn a_graph_walked_and_dropped_on_another_thread() {
    let x = leaf(&[2.0]);
    let y = Mul::apply(&x, &x);
    std::thread::spawn(move || y.backward().unwrap()).join().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

pub(crate) fn an_input_changed_that_nobody_saved() {
    let x = leaf(&[1.0]);
    let h = &x * 1.0;
    let y = Meddles::apply(&h, nothing, nothing);
    no_grad().run(|| h.fill(10.0)).unwrap();
    y.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

pub(crate) fn an_output_that_is_a_view_of_the_input() {
    #[py_layer]
    impl Turned {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x.transpose()
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.transpose()
        }
    }
    let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    x.set_stop_gradient(false);
    let w = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    (Turned::apply(&x) * w).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
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
