// backward takes the gradient before the output
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f32>, y: ArrayViewD<f32>) -> ArrayD<f32> {
        &dy * &y
    }
}

fn main() {}
