// arguments that are no names of outputs, one of another macro, a second path, a misspelt `crate`, and nothing between commas
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func(y = 3)]
impl Valued {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func(crate = autograd_core, crate = autograd_core)]
impl Twice {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func(no_grad)]
impl OfALayer {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func(y, , crate = ::autograd_core)]
impl Gap {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func(y, crat)]
impl Slip {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

fn main() {}
