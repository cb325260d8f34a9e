// another type that is called `Option`
use autograd_core::prelude::*;

enum Option<T> {
    Some(T),
    None,
}

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        b: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        match b {
            Option::Some(b) => x + b,
            Option::None => x * 2.0,
        }
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), b: dy.clone() }
    }
}

#[py_layer]
impl Stopped {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] b: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        match b {
            Option::Some(b) => x + b,
            Option::None => x * 2.0,
        }
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

fn main() {}
