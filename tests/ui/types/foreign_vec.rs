// another type that is called `Vec`
use autograd_core::prelude::*;

struct Vec<T>(T);

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Vec<Tensor<f64>> {
        Vec(x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dys: &[Tensor<f64>]) -> Tensor<f64> {
        &dys[0] * 2.0
    }
}

fn main() {}
