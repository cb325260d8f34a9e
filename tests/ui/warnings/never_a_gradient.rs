// Gradients that are never there, and saved tensors that are never read.
#![deny(deprecated)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE
}

fn main() {}

//= a gradient that is always `None`, in a tuple
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Option<Tensor<f64>>, Option<Tensor<f64>>) {
        (None, Some(dy * 2.0))
    }

//= the only gradient is always `None`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Option<Tensor<f64>>, String> {
        Ok(None)
    }

//= saved tensors that `backward` never reads
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
