// A `backward` that does not fit its `forward`.
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
CASE
}

fn main() {}

//= backward takes a value that does not exist
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(out: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &out * &dy
    }

//= backward returns one gradient for two inputs
    fn forward(x: ArrayViewD<f32>, w: ArrayViewD<f32>) -> ArrayD<f32> {
        &x * &w
    }

    fn backward(x: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &x * &dy
    }

//= gradients whose element type differs from that of their input or output
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
        dy.to_owned()
    }

//= backward leaves out the gradient of an output
    fn forward(x: ArrayViewD<f32>) -> (ArrayD<f32>, ArrayD<f32>) {
        (x.to_owned(), x.to_owned())
    }

    fn backward(x: ArrayViewD<f32>, dy0: ArrayViewD<f32>) -> ArrayD<f32> {
        &x * &dy0
    }

//= backward takes the gradient before the output
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f32>, y: ArrayViewD<f32>) -> ArrayD<f32> {
        &dy * &y
    }

//= `?` in a py_func whose function returns no `Result`
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned().into_shape_with_order(vec![4])?
    }

    fn backward(x: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        let dx = dy.to_owned().into_shape_with_order(x.shape())?;
        dx
    }
