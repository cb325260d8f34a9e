// two blocks of #[py_func] with one name
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {}
