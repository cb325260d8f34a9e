// says: the macro makes the struct `Op`, and there is a trait `Op` in this scope; remove that trait
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};
trait Op {}
#[py_func] impl Op { fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> { &x * 2.0 } }
fn main() {}
