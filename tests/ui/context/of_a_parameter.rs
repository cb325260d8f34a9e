// a context of a type parameter of `forward`: no error about the parameter itself
use autograd_core::prelude::*;

trait Context {}

#[py_layer]
impl Op {
    fn forward<C: Context>(ctx: &mut C, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
