//! Odd inputs, outputs and gradients, and one tensor in several positions. If a way is harmless, the
//! resulting numbers show that.

use autograd_core::prelude::*;
use support::{gradient, leaf};

use crate::run::{backward_reported, usable};

#[py_layer]
impl Mul {
    type Saved = (Tensor<f64>, Tensor<f64>);

    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
    ) -> Tensor<f64> {
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
