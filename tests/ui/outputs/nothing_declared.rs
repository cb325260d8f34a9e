// `forward` ends with a tensor, and declares that it returns nothing
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) {
        let y = x * 2.0;
        y + 1.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
