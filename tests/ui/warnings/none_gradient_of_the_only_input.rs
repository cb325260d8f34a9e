// the only gradient is always `None`
#![deny(deprecated)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Option<Tensor<f64>>, String> {
        Ok(None)
    }
}

fn main() {}
