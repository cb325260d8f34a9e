// backward leaves out the gradient of an output
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> (ArrayD<f32>, ArrayD<f32>) {
        (x.to_owned(), x.to_owned())
    }

    fn backward(x: ArrayViewD<f32>, dy0: ArrayViewD<f32>) -> ArrayD<f32> {
        &x * &dy0
    }
}

fn main() {}
