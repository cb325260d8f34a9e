// says: `#[cfg]` on a parameter is not supported
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};
#[py_func]
impl Op { fn forward(x: ArrayViewD<f64>, #[cfg(unix)] w: ArrayViewD<f64>) -> ArrayD<f64> { &x * 1.0 } }
fn main() {}
