//! Outputs, saved tensors and gradients that are absent or of unusual kinds, in addition to `py_layer.rs`.
//! Compile errors are in `ui`.

use std::sync::Mutex;

use autograd_core::prelude::*;
use autograd_core::{Error, Result};
use support::leaf;

/// The gradients that backward functions received.
static SEEN: Mutex<Vec<(&str, Vec<Option<f64>>)>> = Mutex::new(Vec::new());

fn see(op: &'static str, grads: &[Option<&Tensor<f64>>]) {
    let items = grads.iter().map(|grad| grad.map(Tensor::item)).collect();
    SEEN.lock().unwrap().push((op, items));
}

fn seen(op: &str) -> Vec<Vec<Option<f64>>> {
    let seen = SEEN.lock().unwrap();
    seen.iter().filter(|(name, _)| *name == op).map(|(_, grads)| grads.clone()).collect()
}

#[py_layer]
impl Weighted {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        b: &Tensor<f64>,
        c: &Tensor<f64>,
    ) -> Tensor<f64> {
        a + b + c
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy.clone(), b: dy * 20.0, c: dy * 300.0 }
    }
}

#[test]
fn gradients_go_by_name_whatever_the_order_of_the_call() -> Result<()> {
    let (a, b, c) = (leaf(&[1.0]), leaf(&[1.0]), leaf(&[1.0]));
    Weighted::with().c(&c).a(&a).b(&b).apply().backward()?;
    let grads = [a, b, c].map(|x| x.grad().unwrap().item());
    assert_eq!(grads, [1.0, 20.0, 300.0]);
    Ok(())
}

#[py_layer]
impl ReturnsItsInput {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.mark_not_inplace(x);
        (x.clone(), x + x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: &Tensor<f64>) -> Tensor<f64> {
        see("ReturnsItsInput", &[Some(dy), Some(dz)]);
        dy + dz * 2.0
    }
}

#[py_layer]
impl ReturnsItsInputBare {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.mark_not_inplace(x);
        ctx.set_materialize_grads(false);
        (x.clone(), x + x)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: Option<&Tensor<f64>>,
        dz: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        see("ReturnsItsInputBare", &[dy, dz]);
        dy.cloned()
    }
}

#[test]
fn backward_runs_through_a_returned_input_and_gets_zeros_or_none() -> Result<()> {
    let x = leaf(&[3.0]);
    ReturnsItsInput::apply(&x).0.backward()?;
    assert_eq!(seen("ReturnsItsInput"), [[Some(1.0), Some(0.0)]]);
    assert_eq!(x.grad().unwrap().item(), 1.0);

    let x = leaf(&[3.0]);
    ReturnsItsInputBare::apply(&x).0.backward()?;
    assert_eq!(seen("ReturnsItsInputBare"), [[Some(1.0), None]]);
    assert_eq!(x.grad().unwrap().item(), 1.0);
    Ok(())
}

#[py_layer]
impl MarksOne {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (marked, y) = (x * 5.0, x * 2.0);
        ctx.mark_non_differentiable(&marked);
        ctx.set_materialize_grads(false);
        (marked, y)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dm: Option<&Tensor<f64>>,
        dy: Option<&Tensor<f64>>,
    ) -> Option<Tensor<f64>> {
        see("MarksOne", &[dm, dy]);
        dy.map(|dy| dy * 2.0)
    }
}

#[test]
fn a_marked_output_gets_none_where_nothing_is_materialized() -> Result<()> {
    let x = leaf(&[1.0]);
    let (marked, y) = MarksOne::apply(&x);
    assert!(marked.stop_gradient());
    (marked + y).backward()?;
    assert_eq!(seen("MarksOne"), [[None, Some(1.0)]]);
    assert_eq!(x.grad().unwrap().item(), 2.0);
    Ok(())
}

#[py_layer(allow(none_gradient))]
impl GivesNone {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Option<Tensor<f64>> {
        let _ = dy;
        None
    }
}

#[test]
fn none_for_an_input_that_wants_a_gradient_is_an_error() {
    let x = leaf(&[1.0]);
    let error = GivesNone::apply(&ReturnsItsInput::apply(&x).1).backward().unwrap_err();
    assert!(
        matches!(&error, Error::GradientMissing { op: "GivesNone", parameter, .. } if parameter == "x"),
        "{error}"
    );
    assert!(x.grad().is_none());
}

#[py_layer]
impl Apart {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        b: &[&Tensor<f64>],
    ) -> (Tensor<f64>, Tensor<f64>) {
        ctx.set_materialize_grads(false);
        (a * 2.0, b[0] * 3.0)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: Option<&Tensor<f64>>,
        db: Option<&Tensor<f64>>,
    ) -> Grads {
        Grads { a: da.map(|da| da * 2.0), b: vec![db.map(|db| db * 3.0)] }
    }
}

#[test]
fn no_gradient_is_right_where_that_of_an_output_did_not_come() -> Result<()> {
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let run = || Apart::apply(&a, &[&b]);
    run().0.backward()?;
    assert_eq!(a.grad().map(|grad| grad.item()), Some(2.0));
    assert!(b.grad().is_none());
    run().1.backward()?;
    assert_eq!(b.grad().map(|grad| grad.item()), Some(3.0));
    let (first, second) = run();
    (first + second).backward()?;
    assert_eq!([a.grad().unwrap().item(), b.grad().unwrap().item()], [4.0, 6.0]);
    Ok(())
}
