// another type that is called `ForwardContext`
use autograd_core::prelude::*;

mod other {
    pub struct ForwardContext<L>(pub L);
}

#[py_layer]
impl Op {
    fn forward(_ctx: &mut other::ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
