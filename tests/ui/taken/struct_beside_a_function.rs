// a struct beside a block of #[py_func] of its name
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

struct Op;

#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {}
