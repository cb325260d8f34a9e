//! Tensors that forward reads besides its inputs: with debug assertions, an error if a gradient
//! would be lost, and only then.
#![cfg(debug_assertions)]

use autograd_core::prelude::*;
use support::leaf;
use support::ops::Double;

/// Calls the given function.
#[py_layer]
impl Calls {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] mask: &Tensor<f64>,
        others: &[&Tensor<f64>],
        f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        let y = f(&(x * mask));
        others.iter().fold(y, |y, &x| y + x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        (dy * 2.0, vec![dy.clone()])
    }
}

/// The error, or `None` if the op succeeds.
fn message_of(f: impl Fn(&Tensor<f64>) -> Tensor<f64>) -> Option<String> {
    let (x, mask, other) = (leaf(&[1.0]), leaf(&[1.0]), leaf(&[3.0]));
    let result = Calls::try_apply(&x, &mask, &[&other], f);
    if let Ok(y) = &result {
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().item(), 2.0);
    }
    result.err().map(|error| error.to_string())
}

#[test]
fn a_tensor_that_is_no_input_is_reported() {
    let w = leaf(&[2.0]);
    let line = line!() + 1;
    let text = message_of(|x| x * &w).unwrap();
    assert!(text.starts_with("Calls: forward reads a tensor of shape [1] that wants"), "{text}");
    assert!(text.contains(&format!("in mul at {}:{line}:", file!())), "{text}");
    assert!(text.ends_with("or read its `detach()` if that is meant"), "{text}");
    // The output of an op that wants a gradient, and a tensor read by another op.
    let h = &w * 2.0;
    assert!(message_of(|x| x * &h).is_some());
    assert!(message_of(|x| Double::apply(x) + Double::apply(&w)).is_some());
    assert!(message_of(|x| Outer::apply(x, &w)).is_some());
}

/// Reads one input itself, and passes the other to another op.
#[py_layer]
impl Outer {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + Double::apply(w)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy * 2.0)
    }
}

#[test]
fn what_is_meant_is_let_alone() {
    let w = leaf(&[2.0]);
    let constant = Tensor::from([2.0]);
    assert_eq!(message_of(|x| x * &constant), None);
    assert_eq!(message_of(|x| x * w.detach()), None);
    assert_eq!(message_of(|x| no_grad().run(|| x * &w)), None);
    assert_eq!(message_of(|x| x * w.item()), None);
    // No gradient flows through a comparison.
    assert_eq!(message_of(|x| x.greater(&w).cast()), None);
    // A graph inside forward.
    assert_eq!(message_of(|x| enable_grad().run(|| x * &w).detach()), None);
    // Inputs, including those of an inner op.
    assert_eq!(message_of(Double::apply), None);
    assert_eq!(message_of(|x| Outer::apply(x, &constant)), None);
    let (x, w) = (leaf(&[1.0]), leaf(&[1.0]));
    Outer::apply(&x, &w).backward().unwrap();
    assert_eq!(w.grad().unwrap().item(), 2.0);
    // If nothing is recorded, no gradient is lost.
    assert_eq!(no_grad().run(|| Calls::apply(&x, &x, &[], |x| x * &w)).item(), 1.0);
}

/// A layer of a network whose weight is in a struct.
struct Weights {
    w: Tensor<f64>,
}

#[py_layer]
impl Scales {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: &Weights) -> Tensor<f64> {
        x * &by.w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

/// Its own inputs are hidden from the op that it calls, and it records nothing.
#[py_layer]
impl Hides {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        Scales::apply(x, &Weights { w: w.clone() })
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy.clone())
    }
}

#[test]
fn a_layer_within_a_layer_reads_for_the_outer_one() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    Hides::apply(&x, &w).backward().unwrap();
    assert_eq!(w.grad().unwrap().item(), 1.0);
    let weights = Weights { w };
    let text = message_of(|x| Scales::apply(x, &weights)).unwrap();
    assert!(text.starts_with("Calls: "), "{text}");
    // Even if no input of the op wants a gradient.
    let text = Scales::try_apply(&Tensor::from([1.0]), &weights).unwrap_err().to_string();
    assert!(text.starts_with("Scales: forward reads a tensor"), "{text}");
}

#[test]
fn a_checkpoint_and_a_thread_tell_it_too() {
    let (x, weights) = (leaf(&[1.0]), Weights { w: leaf(&[2.0]) });
    let inside = x.clone();
    let thread = std::thread::spawn(move || Scales::try_apply(&inside, &weights).is_err());
    assert!(thread.join().unwrap());
    // The graph knows the tensors that a checkpoint's closure holds; they are not hidden.
    let (a, b) = (x.clone(), leaf(&[3.0]));
    let held = b.clone();
    autograd_core::checkpoint(move || Outer::apply(&a, &held)).backward().unwrap();
    assert_eq!(b.grad().unwrap().item(), 2.0);
    // A forward on another thread does not affect this one.
    let weights = Weights { w: leaf(&[2.0]) };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert!(Scales::try_apply(&x, &weights).is_err());
                    assert!(Outer::try_apply(&x, &weights.w).is_ok());
                }
            });
        }
    });
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let w = leaf(&[2.0]);
    let panics = || message_of(|x| panic!("{}", x * &w));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(message_of(|x| x * 2.0), None);
    assert!(message_of(|x| x * &w).is_some());
}
