// a block without forward, one with self, and a struct
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Empty {
    fn backward(dy: ArrayViewD<f32>) -> ArrayD<f32> {
        dy.to_owned()
    }
}

#[py_func]
impl WithSelf {
    fn forward(&self, x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func]
struct NoBlock;

fn main() {}
