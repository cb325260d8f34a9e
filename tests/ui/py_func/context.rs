// A `#[py_func]` block has no context: forward and backward take arrays.
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Double {
    fn forward(ctx: &mut ForwardContext<Self>, x: ArrayViewD<f64>) -> ArrayD<f64> {
        2.0 * &x
    }
    fn backward(ctx: &BackwardContext<Self>, dy: ArrayViewD<f64>) -> ArrayD<f64> {
        2.0 * &dy
    }
}

fn main() {}
