// a block of #[py_func] beside an op of its name
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {}
