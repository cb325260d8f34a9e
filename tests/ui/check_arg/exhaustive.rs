// all numbers of type f32, for ops that have more than one input, or something else than a formula
use autograd_core::prelude::*;

#[py_layer(elementwise, check(exhaustive))]
impl Product {
    fn forward(x: Real, w: Real) -> Real {
        x * w
    }
}

#[py_layer(elementwise, check(exhaustive))]
impl Scaled {
    fn forward(x: Real, scale: f64) -> Real {
        x * scale
    }
}

#[py_layer(check(exhaustive))]
impl Square {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

#[py_layer(elementwise, surrogate, check(exhaustive))]
impl Spike {
    fn forward(x: Real) -> Real {
        x.gt(0.0).select(1.0, 0.0)
    }

    fn backward(x: Real, dy: Real) -> Real {
        dy / (1.0 + x.abs())
    }
}

fn main() {}
