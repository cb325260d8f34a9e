// a function of a block that takes or returns another type is reported at its name
use autograd_core::static_graph::py_func;
use ndarray::ArrayViewD;

#[py_func]
impl Sum {
    fn forward(x: ArrayViewD<f64>) -> f64 {
        x.sum()
    }
}

fn main() {}
