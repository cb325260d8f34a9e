// a result that is no array is reported at its type, with the array to write
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayView2, ArrayViewD};

#[py_func]
impl List {
    fn forward(x: ArrayViewD<f64>) -> Vec<f64> {
        x.iter().copied().collect()
    }
}

#[py_func(y, count)]
impl Both {
    fn forward(x: ArrayView2<f64>) -> Result<(ArrayView2<f64>, usize), String> {
        Ok((x, x.len()))
    }
}

#[py_func]
impl Gradient {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }

    fn backward(dy: ArrayViewD<f64>) -> f64 {
        dy.sum()
    }
}

struct Table;

#[py_func]
impl IntoATable {
    fn forward(x: ArrayViewD<f64>) -> Table {
        let _ = x;
        Table
    }
}

fn main() {}
