// a tensor hidden in an alias of a list
use autograd_core::prelude::*;

type Many = Vec<Tensor<f64>>;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Many) -> Tensor<f64> {
        x * &w[0]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
