// the only tensor input is never differentiated
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, #[stop_gradient] x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

fn main() {}
