//! The scope that finds the first NaN or infinity.

use std::panic::catch_unwind;

use autograd_core::prelude::*;
use autograd_core::{Error, checkpoint, detect_anomaly, grad};
use support::leaf;

#[track_caller]
fn finding(result: autograd_core::Result<()>) -> (&'static str, String, Vec<String>, u32) {
    match result {
        Err(Error::NotFinite { op, found, inputs, location }) => {
            assert_eq!(location.file(), file!());
            (op, found, inputs, location.line())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_op_of_a_forward() {
    let (x, w) = (leaf(&[1.0, -2.0, 0.0]), leaf(&[0.5]));
    let scope = detect_anomaly();
    let h = &x * &w;
    let line = line!() + 1;
    let broken = h.ln();
    let loss = (broken.exp() + &x).sum();
    let (op, found, inputs, at) = finding(scope.check());
    assert_eq!((op, at), ("ln", line));
    assert_eq!(found, "the result has 1 NaN and 1 infinity, the first at [1] of shape [3]");
    assert!(
        inputs[0].starts_with("input 0: shape [3], from -1.0 to 0.5, from mul at "),
        "{inputs:?}"
    );
    // No backward passes through that.
    assert_eq!(finding(loss.backward()).0, "ln");
    assert!(grad(&[&loss], &[&x]).is_err());
    assert!(x.grad().is_none());
    drop(scope);
    loss.backward().unwrap();
}

#[test]
fn inputs_of_every_kind() {
    let x = leaf(&[1.0, 2.0]);
    let before = &x * 2.0;
    let scope = detect_anomaly();
    let _ = &before / &Tensor::from([0.0, 1.0]);
    let (op, found, inputs, _) = finding(scope.check());
    assert_eq!(
        (op, &found[..]),
        ("div", "the result has 1 infinity, the first at [0] of shape [2]")
    );
    assert!(inputs[0].ends_with("outside this scope"), "{inputs:?}");
    assert_eq!(inputs[1], "input 1: shape [2], from 0.0 to 1.0, wants no gradient");
    assert_eq!(inputs.len(), 2);
    drop(scope);
    let nan = leaf(&[f64::NAN, 3.0]);
    let scope = detect_anomaly();
    let _ = &nan + 1.0;
    let (_, _, inputs, _) = finding(scope.check());
    assert_eq!(inputs, ["input 0: shape [2], 3.0 everywhere, 1 NaN"]);
}

#[test]
fn the_first_rule_of_a_backward() {
    let x = leaf(&[0.0, 4.0]);
    let scope = detect_anomaly();
    let line = line!() + 1;
    let h = x.sqrt();
    let loss = (&h * 3.0).sum();
    scope.check().unwrap();
    let (op, found, inputs, at) = finding(loss.backward());
    assert_eq!((op, at), ("sqrt", line));
    assert!(found.starts_with("backward gave its input 0 a gradient with 1 infinity"), "{found}");
    assert_eq!(inputs[0], "gradient of output 0: shape [2], 3.0 everywhere");
    assert_eq!(inputs[1], "input 0: shape [2], from 0.0 to 4.0");
    assert!(x.grad().is_none());
    assert!(scope.check().is_err());
}

#[test]
fn a_seed_or_a_hook() {
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    let _ = h.register_hook(|grad| Ok(Some(grad / 0.0))).unwrap();
    let y = &h + 1.0;
    let _scope = detect_anomaly();
    let (op, found, ..) = finding(y.backward());
    assert_eq!(op, "mul");
    assert!(found.starts_with("the gradient of its output 0 came with 1 infinity"), "{found}");
}

#[py_layer]
impl Halves {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 0.5, x.ln())
    }

    fn backward(_ctx: &BackwardContext<Self>, a: &Tensor<f64>, _b: &Tensor<f64>) -> Tensor<f64> {
        a / 0.0
    }
}

#[py_layer]
impl Masked {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] mask: &Tensor<f64>,
        #[stop_gradient] others: &[Tensor<f64>],
    ) -> Tensor<f64> {
        x / mask + &others[0]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy / 0.0
    }
}

#[test]
fn no_tensor_input_is_left_out() {
    let (x, c) = (leaf(&[1.0, 2.0]), Tensor::from([3.0, 0.0]));
    let expected = [
        "input 0: shape [2], from 1.0 to 2.0",
        "input `mask`: shape [2], from 0.0 to 3.0",
        "input `others[0]`: shape [1], 7.0",
        "input `others[1]`: shape [1], 8.0",
    ];
    let others = [Tensor::from([7.0]), Tensor::from([8.0])];
    let scope = detect_anomaly();
    let _ = Masked::apply(&x, &c, &others);
    assert_eq!(finding(scope.check()).2, expected);
    drop(scope);
    // In backward as well.
    let _scope = detect_anomaly();
    let y = Masked::apply(&x, &x.detach(), &others);
    let (_, _, inputs, _) = finding(y.sum().backward());
    assert_eq!(inputs.len(), 1 + 4, "{inputs:?}");
    // An op that does not save its constant, and a fused one.
    for broken in [
        (|x, c| x - c) as fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>,
        |x, c| x.matmul(c),
        |x, c| Tensor::concat(&[x, c], 0),
        |x, c| Tensor::from([true, false]).where_else(x, c),
    ] {
        let scope = detect_anomaly();
        let _ = broken(&x, &Tensor::from([f64::INFINITY, 5.0]));
        let Err(Error::NotFinite { inputs, .. }) = scope.check() else {
            // The mask selects finite numbers.
            continue;
        };
        assert_eq!(inputs[1], "input 1: shape [2], 5.0 everywhere, 1 infinite, wants no gradient");
    }
}

#[test]
fn layers() {
    let scope = detect_anomaly();
    let line = line!() + 1;
    let _ = Halves::apply(&leaf(&[-1.0]));
    let (op, found, _, at) = finding(scope.check());
    assert_eq!((op, at), ("Halves", line));
    assert_eq!(found, "the result has 1 NaN, the first at [0] of shape [1]");
    drop(scope);
    let _scope = detect_anomaly();
    let (a, _) = Halves::apply(&leaf(&[1.0]));
    let (op, found, ..) = finding(a.backward());
    assert_eq!(op, "Halves");
    assert!(found.starts_with("backward gave its input 0 a gradient with 1 infinity"), "{found}");
}

#[test]
fn scopes_nest_and_end() {
    let x = leaf(&[-1.0]);
    let outer = detect_anomaly();
    {
        let inner = detect_anomaly();
        let _ = x.sqrt();
        assert!(inner.check().is_err());
        assert!(detect_anomaly().check().is_ok());
    }
    assert_eq!(finding(outer.check()).0, "sqrt");
    drop(outer);
    let panic = catch_unwind(|| {
        let _scope = detect_anomaly();
        panic!("inside");
    });
    assert!(panic.is_err());
    x.sqrt().sum().backward().unwrap();
    assert!(x.grad().unwrap().item().is_nan());
    let other = std::thread::spawn(|| detect_anomaly().check().is_ok());
    assert!(other.join().unwrap());
}

#[test]
fn what_is_finite_passes() {
    let x = leaf(&[0.5, 0.25]);
    let scope = detect_anomaly();
    let inside = x.clone();
    let y = checkpoint(move || inside.exp() / 2.0);
    let mut z = y.sin() * Tensor::from([1.0, 2.0]);
    z *= 2.0;
    let empty = Tensor::<f32>::zeros([0]);
    empty.set_stop_gradient(false);
    (&empty * 2.0).sum().backward().unwrap();
    z.sum().backward().unwrap();
    scope.check().unwrap();
    assert!(x.grad().is_some());
}
