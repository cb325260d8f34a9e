// generics that the struct cannot have: other arguments than the block's, a lifetime, of a function
use autograd_core::Float;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl<T: Float> Other<Vec<T>> {
    fn forward(x: ArrayViewD<T>) -> ArrayD<T> {
        x.to_owned()
    }
}

#[py_func]
impl<'a, T: Float> Borrowed<'a, T> {
    fn forward(x: ArrayViewD<T>) -> ArrayD<T> {
        x.to_owned()
    }
}

#[py_func]
impl Inside {
    fn forward<T: Float>(x: ArrayViewD<T>) -> ArrayD<T> {
        x.to_owned()
    }
}

fn main() {}
