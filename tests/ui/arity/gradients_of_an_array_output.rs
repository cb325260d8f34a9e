// an array output has one gradient parameter
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [x * 2.0, x * 3.0]
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * db
    }
}

fn main() {}
