// says: there is an op `Op` above in this scope
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};
#[py_func] impl Op { fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 } }
#[py_func] impl Op { fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 } }
fn main() {}
