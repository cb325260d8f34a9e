// a parameter that is no view of an array is reported at its type, with the view to write
use autograd_core::Tensor;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Owned {
    fn forward(x: ArrayD<f64>) -> ArrayD<f64> {
        x
    }
}

#[py_func]
impl Borrowed {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }

    fn backward(dy: &ArrayD<f64>) -> ArrayD<f64> {
        dy * 2.0
    }
}

#[py_func]
impl Number {
    fn forward(x: f64) -> ArrayD<f64> {
        todo!("{x}")
    }

    fn backward(x: f64, dy: ArrayViewD<f64>) -> ArrayD<f64> {
        &dy * x
    }
}

#[py_func]
impl List {
    fn forward(xs: &[f64], step: Option<usize>) -> ArrayD<f64> {
        todo!("{xs:?} {step:?}")
    }
}

#[py_func]
impl Held {
    fn forward(x: Tensor<f64>, index: ArrayViewD<usize>) -> ArrayD<f64> {
        todo!("{x} {index}")
    }
}

struct Table;

#[py_func]
impl OfATable {
    fn forward(table: Table) -> ArrayD<f64> {
        let _ = table;
        todo!()
    }
}

fn main() {}
