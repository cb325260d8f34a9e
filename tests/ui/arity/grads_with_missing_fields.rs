// several missing gradients in `Grads { .. }`, in one of two places
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>, c: &Tensor<f64>) -> Tensor<f64> {
        a * b * c
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        if dy.len() > 1 {
            return Grads { a: dy * 2.0, b: None, c: None };
        }
        Grads { a: dy * 2.0 }
    }
}

fn main() {}
