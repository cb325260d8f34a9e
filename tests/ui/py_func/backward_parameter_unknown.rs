// backward takes a value that does not exist
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(out: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &out * &dy
    }
}

fn main() {}
