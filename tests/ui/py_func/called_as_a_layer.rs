// an op of a program has `call`, not `apply`
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Same {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {
    let _ = Same::apply(&Tensor::from([1.0]));
}
