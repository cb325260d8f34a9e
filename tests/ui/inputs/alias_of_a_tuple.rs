// a tensor hidden in an alias of a tuple, not in front
use autograd_core::prelude::*;

type Pair = (f64, Option<Tensor<f64>>);

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Pair) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
