// the arity is checked also where the input wants no gradient and backward never runs
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        dz: &Tensor<f64>,
    ) -> Tensor<f64> {
        dy + dz
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
