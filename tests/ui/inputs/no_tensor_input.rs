// `forward` has no tensor input
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, factor: f64) -> Tensor<f64> {
        Tensor::from(factor)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let _ = Op::apply(2.0);
}
