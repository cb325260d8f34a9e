// an input of forward that backward names and does not take
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Square {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        &x * &x
    }

    fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
        2.0 * &x * &dy
    }
}

fn main() {}
