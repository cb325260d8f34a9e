// a trait over all types has methods of the names that expansions call
#![deny(warnings)]
#![allow(dead_code)]
use autograd_core::prelude::*;

trait Everything: Sized {
    fn show(self) {}
    fn lend(self) {}
    fn input(self) {}
    fn tangent(self) {}
    fn user(self) {}
    fn start(self) {}
}
impl<T> Everything for T {}

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize) { (x * 2.0, 1) }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> { dx * 2.0 }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
