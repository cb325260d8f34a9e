// a check of an op that has no gradient, and of one whose backward is meant to be another
use autograd_core::prelude::*;

#[py_layer(no_grad, check(x = [2]))]
impl Norm {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.square().sum()
    }
}

#[py_layer(elementwise, surrogate, check(x = [2]))]
impl Spike {
    fn forward(x: Real) -> Real {
        x.gt(0.0).select(1.0, 0.0)
    }

    fn backward(x: Real, dy: Real) -> Real {
        dy / (1.0 + x.abs())
    }
}

#[py_layer(surrogate, check(x = [2]))]
impl Reverse {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        -dy
    }
}

fn main() {}
