// rustc: --edition=2018
// `gen` is no keyword here, and raw names are as any
#![deny(warnings)]
use autograd_core::prelude::*;
use autograd_core::{scalar_op, static_graph::py_func};
use ndarray::{ArrayD, ArrayViewD};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, gen: &Tensor<f64>, r#in: &Tensor<f64>) -> Tensor<f64> { gen * r#in }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads { Grads { gen: dy.clone(), r#in: dy.clone() } }
}

scalar_op!(Line: y = gen * r#in, dgen = dy * r#in, din = dy * gen);

#[py_func]
impl Product {
    pub fn forward(gen: ArrayViewD<'_, f64>, r#in: ArrayViewD<'_, f64>, _0: ArrayViewD<'_, f64>) -> ArrayD<f64> {
        &gen * &r#in
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::with().gen(&x).r#in(&x).apply();
    let _ = Line::with().gen(&x).r#in(&x).apply();
    let _ = Product::call;
}
