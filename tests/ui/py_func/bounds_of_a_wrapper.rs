// bounds on the parameters and results of a py_func, in a wrapper
use autograd_core::static_graph::{PyFuncParam, PyFuncReturn, PyFuncValue};

fn takes<P: PyFuncParam>() {}

fn returns<V: PyFuncValue>() {}

fn returns_all<R: PyFuncReturn<2>>() {}

fn main() {
    takes::<Vec<f64>>();
    returns::<f64>();
    returns_all::<[f64; 2]>();
}
