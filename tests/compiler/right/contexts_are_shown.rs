// contexts are `Debug`
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { println!("{ctx:?}"); x * 2.0 }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { println!("{ctx:?}"); dy * 2.0 }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
