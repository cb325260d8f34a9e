// `Grads` is written without arguments
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads<f64> {
        Grads { x: dy * 2.0 }
    }
}

#[py_layer]
impl Fallible {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<Grads<Tensor<f64>>, String> {
        Ok(Grads { x: dy * 2.0 })
    }
}

fn main() {}
