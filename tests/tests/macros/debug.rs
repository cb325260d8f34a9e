//! What the generated types print.

use std::sync::Mutex;

use autograd_core::prelude::*;
use support::leaf;

/// What the ops below printed last.
static PRINTED: Mutex<String> = Mutex::new(String::new());

#[py_layer]
impl Weighted {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        r#in: &[&Tensor<f64>],
    ) -> Tensor<f64> {
        *PRINTED.lock().unwrap() = format!("{:?}", ctx.needs_input_grad());
        ctx.save_for_backward((x, r#in[0]));
        x * r#in[0]
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        let grads = Grads { x: None::<Tensor<f64>>, r#in: vec![Some(dy * x)] };
        *PRINTED.lock().unwrap() = format!("{:?} {grads:?}", ctx.needs_input_grad());
        Grads { x: Some(dy * w), ..grads }
    }
}

#[test]
fn needs_and_gradients_print_names_of_users() {
    let (x, w) = (leaf(&[2.0]), Tensor::from([3.0]));
    let y = Weighted::apply(&x, &[&w]);
    assert_eq!(*PRINTED.lock().unwrap(), "NeedsInputGrad { x: true, in: [false] }");
    y.sum().backward().unwrap();
    let printed = PRINTED.lock().unwrap().clone();
    let expected = "NeedsInputGrad { x: true, in: [false] } Grads { x: None, in: [Some(";
    assert!(printed.starts_with(expected), "{printed}");
}

#[py_layer(elementwise)]
impl Product {
    fn forward(x: Real, w: Real) -> Real {
        x * w
    }

    fn backward(x: Real, w: Real, dy: Real) -> Grads {
        is_printed(Grads { x: dy * w, w: dy * x })
    }
}

fn is_printed<T: std::fmt::Debug>(value: T) -> T {
    value
}

#[test]
fn gradients_of_a_formula_have_a_debug() {
    let (x, w) = (leaf(&[2.0]), leaf(&[3.0]));
    Product::apply(&x, &w).sum().backward().unwrap();
    assert_eq!((x.grad().unwrap().item(), w.grad().unwrap().item()), (3.0, 2.0));
}
