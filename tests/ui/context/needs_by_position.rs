// `needs_input_grad()` has names, not positions
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let w = if ctx.needs_input_grad()[1] { Some(dy.clone()) } else { None };
        Grads { x: dy.clone(), w }
    }
}

fn main() {}
