// no `forward`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
