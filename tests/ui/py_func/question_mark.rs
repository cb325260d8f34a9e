// `?` in a py_func whose function returns no `Result`
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned().into_shape_with_order(vec![4])?
    }

    fn backward(x: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        let dx = dy.to_owned().into_shape_with_order(x.shape())?;
        dx
    }
}

fn main() {}
