// a module beside an op of its name
use autograd_core::prelude::*;

#[allow(non_snake_case)]
mod Op {}

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
