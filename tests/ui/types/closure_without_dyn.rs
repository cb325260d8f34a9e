// A closure's trait without `dyn` is named where it stands, in each form.
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Mapped {
    type Attrs = Box<Fn(f64) -> f64 + Send + Sync>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: &FnMut(f64) -> f64) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise)]
impl Scaled {
    fn forward(x: Real, f: Box<Fn(f64) -> f64>) -> Real {
        x * f(1.0)
    }
}

#[py_func]
impl Doubled {
    fn forward(x: ArrayViewD<f64>) -> Box<FnOnce() -> ArrayD<f64>> {
        &x * 2.0
    }
}

fn main() {}
