// parameters and plain types with names of the standard library and of what is generated
#![deny(warnings)]
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

#[py_func]
impl<Option: Float> Func<Option> {
    pub fn forward(x: ArrayViewD<Option>) -> ArrayD<Option> { x.to_owned() }
}

#[py_layer]
impl<Vec: Float> Listed<Vec> {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<Vec>) -> Tensor<Vec> { x.clone() }
    pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<Vec>) -> Grads { Grads { x: dy.clone() } }
}

#[derive(Clone, Copy)]
pub struct M1(pub f64);

#[py_layer(elementwise)]
impl Masked {
    pub fn forward(x: Real, #[stop_gradient] mask: Mask, by: M1) -> Real { mask.select(x, x * by.0) }
}

fn main() {
    let (x, mask) = (Tensor::<f64>::from(1.0), Tensor::from([true]));
    let _ = (Listed::apply(&x), Masked::apply(&x, &mask, M1(2.0)), Func::<f64>::call);
}
