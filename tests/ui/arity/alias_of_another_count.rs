// an alias of a tuple with another count than inputs
use autograd_core::prelude::*;

type Three = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Three {
        (dy * 2.0, dy * 3.0, dy * 4.0)
    }
}

fn main() {}
