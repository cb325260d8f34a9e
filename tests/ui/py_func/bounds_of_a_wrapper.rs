// what a py_func takes and returns, asked by a wrapper's bounds
use autograd_core::static_graph::{PyFuncParam, PyFuncReturn, PyFuncValue};

fn takes<P: PyFuncParam>() {}

fn returns<V: PyFuncValue>() {}

fn returns_all<R: PyFuncReturn<2>>() {}

fn main() {
    takes::<Vec<f64>>();
    returns::<f64>();
    returns_all::<[f64; 2]>();
}
