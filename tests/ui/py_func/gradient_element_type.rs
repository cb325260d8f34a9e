// gradients whose element type differs from that of their input or output
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
        dy.to_owned()
    }
}

fn main() {}
