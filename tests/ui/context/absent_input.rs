// an input of forward that backward names and does not get
use autograd_core::prelude::*;

#[py_layer]
impl Square {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * x * 2.0 + x
    }
}

#[py_layer]
impl Product {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(w);
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * ctx.saved_tensor(), w: dy * x }
    }
}

#[py_layer]
impl Scaled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, scale: f64) -> Tensor<f64> {
        x * scale
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * scale }
    }
}

#[py_layer(elementwise)]
impl ScaledFormula {
    fn forward(x: Real, scale: f64) -> Real {
        x * scale
    }

    fn backward(dy: Real) -> Real {
        dy * scale
    }
}

fn main() {}
