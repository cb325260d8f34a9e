// rustc: --crate-type=lib
// lints forbidden, of which an expansion allows none
#![forbid(nonstandard_style, rust_2018_idioms, unused, warnings)]
use autograd_core::nn::{Linear, Module};
use autograd_core::prelude::*;
use autograd_core::{scalar_op, static_graph::py_func};
use ndarray::{ArrayD, ArrayViewD};

#[derive(Saved)]
pub struct Kept { pub x: Tensor<f64> }

#[derive(Module)]
pub struct Net { pub x: Linear<f64> }

#[py_layer]
impl Layer {
    type Saved = Kept;
    type Attrs = f64;
    pub fn forward(ctx: &mut ForwardContext<'_, Self>, x: &Tensor<f64>, #[default(1.0)] k: f64, s: &str) -> (Tensor<f64>, usize) {
        ctx.save_for_backward(Kept { x: x.clone() });
        ctx.set_attrs(k);
        (x * 2.0, s.len())
    }
    pub fn backward(ctx: &BackwardContext<'_, Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * &ctx.saved_tensor().x * *ctx.attrs() }
    }
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
