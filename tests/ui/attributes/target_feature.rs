// a function of an op cannot have `#[target_feature]`, in all forms
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Doubled {
    #[target_feature(enable = "avx2")]
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise)]
impl Halved {
    #[target_feature(enable = "avx2")]
    fn forward(x: Real) -> Real {
        x / 2.0
    }
}

#[py_func]
impl Same {
    #[target_feature(enable = "avx2")]
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        x.to_owned()
    }
}

fn main() {}
