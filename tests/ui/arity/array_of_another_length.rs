// An array of gradients that is longer than the array of inputs, returned and as a field of `Grads`.
use autograd_core::prelude::*;

#[py_layer]
impl Sum {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: [&Tensor<f64>; 2]) -> Tensor<f64> {
        xs[0] + xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> [Tensor<f64>; 3] {
        [dy.clone(), dy.clone(), dy.clone()]
    }
}

#[py_layer]
impl Scaled {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        ys: &[Tensor<f64>; 2],
    ) -> Tensor<f64> {
        x * (&ys[0] + &ys[1])
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), ys: [dy.clone()] }
    }
}

fn main() {}
