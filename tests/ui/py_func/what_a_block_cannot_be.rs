// items and qualifiers that a block of #[py_func] cannot have
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl Clone for OfTrait {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func]
impl Twice {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn forward(y: ArrayViewD<f32>) -> ArrayD<f32> {
        y.to_owned()
    }
}

#[py_func]
impl Taken {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }

    fn call() {}
}

#[py_func]
impl Unusual {
    async fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func]
impl Nameless {
    fn forward((x, _): (ArrayViewD<f32>, u8)) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func]
impl Neither {
    fn forward() {}
}

#[py_func(y, z)]
impl Counted {
    fn forward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

#[py_func]
impl Nothing {
    fn forward(x: ArrayViewD<f32>) {
        let _ = x;
    }

    fn backward(x: ArrayViewD<f32>) -> ArrayD<f32> {
        x.to_owned()
    }
}

fn main() {}
