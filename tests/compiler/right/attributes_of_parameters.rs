// levels of lints on parameters, also behind a `cfg_attr`
#![deny(warnings)]
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Op {
    pub fn forward(
        #[cfg_attr(all(), allow(unused_variables))] ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[cfg_attr(all(), allow(unused_variables), warn(unused_mut))] k: f64,
        #[cfg_attr(all(), expect(unused_variables))] l: f64,
    ) -> Tensor<f64> {
        x * 2.0
    }
    pub fn backward(
        #[cfg_attr(all(), expect(unused_variables))] ctx: &BackwardContext<Self>,
        #[cfg_attr(any(), allow(unused_variables))] dy: &Tensor<f64>,
    ) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise)]
#[cfg_attr(all(), expect(non_snake_case))]
impl Formula {
    pub fn forward(x: Real, #[cfg_attr(all(), allow(unused_variables))] K: f64) -> Real { x * 2.0 }
    pub fn backward(dy: Real, #[cfg_attr(all(), allow(unused_variables))] K: f64) -> Real { dy * 2.0 }
}

#[py_func]
impl Func {
    pub fn forward(#[cfg_attr(all(), allow(unused_variables))] x: ArrayViewD<f64>) -> ArrayD<f64> {
        todo!()
    }
}

fn main() {}
