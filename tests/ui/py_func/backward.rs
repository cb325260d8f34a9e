// A `backward` that does not fit its `forward`.
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
CASE
    }
}

fn main() {}

//= backward takes a value that does not exist
        x.to_owned()
    }

    fn backward(out: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        &out * &dy

//= gradients whose element type differs from that of their input or output
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
        dy.to_owned()

//= backward takes the gradient before the output
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f32>, y: ArrayViewD<f32>) -> ArrayD<f32> {
        &dy * &y

//= `?` in a py_func whose function returns no `Result`
        x.to_owned().into_shape_with_order(vec![4])?
    }

    fn backward(x: ArrayViewD<f32>, dy: ArrayViewD<f32>) -> ArrayD<f32> {
        let dx = dy.to_owned().into_shape_with_order(x.shape())?;
        dx
