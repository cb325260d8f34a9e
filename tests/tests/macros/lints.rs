//! Expansions cause no warnings under the strictest lints: clippy, which CI runs, reports nothing
//! for the output of `#[py_layer]`.
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications)]
#![deny(clippy::pedantic, clippy::nursery)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![deny(clippy::missing_docs_in_private_items, clippy::allow_attributes_without_reason)]
#![forbid(unsafe_code)]

use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

/// The saved tensors.
#[derive(Saved)]
struct Kept {
    /// The input.
    x: Tensor<f64>,
}

/// A model.
#[derive(Module)]
struct Model<T: Float> {
    /// A layer.
    layer: Linear<T>,
    /// Its width.
    #[module(skip)]
    width: usize,
}

/// An op with every form.
#[py_layer]
impl Everything {
    type Saved = Kept;
    type Attrs = f64;

    /// Computes it.
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        many: &[&Tensor<f64>],
        bias: Option<&Tensor<f64>>,
        #[stop_gradient] at: &Tensor<i64>,
        f: impl Fn(f64) -> f64,
        #[default(2.0)] by: f64,
    ) -> Result<(Tensor<f64>, usize), String> {
        if at.is_empty() {
            return Err("no places".to_owned());
        }
        ctx.save_for_backward(Kept { x: x.clone() });
        ctx.set_attrs(by);
        let mut y = x * f(by);
        for one in many {
            y += *one;
        }
        if let Some(bias) = bias {
            y += bias;
        }
        Ok((y, at.len()))
    }

    /// Its gradients.
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let needs = ctx.needs_input_grad();
        let many = needs.many.iter().map(|needed| needed.then(|| dy.clone()));
        Grads {
            x: dy * *ctx.attrs() + &ctx.saved_tensor().x * 0.0,
            many: many.collect::<Vec<_>>(),
            bias: needs.bias.then(|| dy.clone()),
        }
    }
}

/// A generic op.
#[py_layer(once_differentiable)]
impl<T: Float, const N: usize> Repeat<T, N> {
    /// Computes it.
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> [Tensor<T>; N] {
        std::array::from_fn(|_| x * 1.0)
    }

    /// Its gradient.
    fn backward(_ctx: &BackwardContext<Self>, ds: &[Tensor<T>]) -> Option<Tensor<T>> {
        ds.first().cloned()
    }
}

/// An op without gradient.
#[py_layer(no_grad)]
impl Length {
    /// Computes it.
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square().sum()
    }
}

/// An operator of programs.
#[py_func]
impl Doubled {
    /// Computes it.
    fn forward(x: ArrayViewD<f64>, w: ArrayViewD<f64>) -> ArrayD<f64> {
        &x * &w
    }

    /// Its gradients.
    fn backward(
        x: ArrayViewD<f64>,
        w: ArrayViewD<f64>,
        dy: ArrayViewD<f64>,
    ) -> (ArrayD<f64>, ArrayD<f64>) {
        (&dy * &w, &dy * &x)
    }
}

#[test]
fn strict_lints_and_a_run() -> Result<(), String> {
    let _ = Doubled::call;
    let x = Tensor::from(vec![1.0]);
    x.set_stop_gradient(false);
    let at = Tensor::<i64>::from(vec![0]);
    let many = [&x];
    let call = Everything::with().x(&x).many(&many).bias(None).at(&at).f(|v| v);
    let (y, n) = call.apply()?;
    assert_eq!((y.to_vec(), n), (vec![3.0], 1));
    y.sum().backward().map_err(|error| error.to_string())?;
    assert_eq!(x.grad().map(|grad| grad.to_vec()), Some(vec![3.0]));
    let [a, _] = Repeat::<f64, 2>::apply(&x);
    assert_eq!(a.to_vec(), [1.0]);
    assert_eq!(Length::apply(&x.detach()).to_vec(), [1.0]);
    let model = Model { layer: Linear::<f64>::new(1, 2), width: 2 };
    assert_eq!(model.parameter_count(), 2 * model.width);
    Ok(())
}
