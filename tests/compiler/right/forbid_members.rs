// rustc: --crate-type=lib --cfg clippy
// an expansion allows no lint without need
#![forbid(clippy::all, clippy::needless_return, clippy::too_many_arguments, clippy::type_complexity)]
#![forbid(clippy::inline_always, clippy::needless_pass_by_value, clippy::must_use_candidate)]
#![forbid(dead_code, deprecated, non_camel_case_types, non_snake_case, non_upper_case_globals)]
use autograd_core::prelude::*;
use autograd_core::{nn::Linear, nn::Module, scalar_op, static_graph::py_func};
use ndarray::{ArrayD, ArrayViewD};

#[derive(Saved)]
pub struct Kept { pub x: Tensor<f64> }

#[derive(Module)]
pub struct Net<T: Float> { pub x: Linear<T> }

#[py_layer]
impl Layer {
    pub fn forward(_ctx: &mut ForwardContext<'_, Self>, __x: &Tensor<f64>, __k: f64) -> Tensor<f64> { __x * __k }
    pub fn backward(_ctx: &BackwardContext<'_, Self>, dy: &Tensor<f64>) -> Grads { Grads { __x: dy * 2.0 } }
}

#[py_layer(elementwise)]
impl Formula {
    pub fn forward(x: Real, k: f64) -> Real { x * k }
    pub fn backward(dy: Real, k: f64) -> Real { dy * k }
}

scalar_op!(pub Line: y = x * 2.0, dx = dy * 2.0);

#[py_func]
impl Doubled {
    pub fn forward(x: ArrayViewD<'_, f64>) -> ArrayD<f64> { &x * 2.0 }
    pub fn backward(dy: ArrayViewD<'_, f64>) -> ArrayD<f64> { &dy * 2.0 }
}
