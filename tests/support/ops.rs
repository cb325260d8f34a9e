//! Ops for tests that are not about their declaration.

use autograd_core::prelude::*;

/// Saves its output.
#[py_layer]
impl<T: Float> Tanh<T> {
    type Saved = Tensor<T>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

/// Saves its input.
#[py_layer]
impl Square {
    type Saved = Tensor<f64>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

/// Saves nothing.
#[py_layer]
impl Double {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

/// Two inputs, whose gradients are one tensor.
#[py_layer]
impl Add {
    pub fn forward(
        _ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        b: &Tensor<f64>,
    ) -> Tensor<f64> {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

/// Returns its input; the gradient is tripled, to show that backward ran.
#[py_layer]
impl Identity {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}
