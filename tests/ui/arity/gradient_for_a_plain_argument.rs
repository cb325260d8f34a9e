// backward returns a place for a plain argument, as in PyTorch
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, factor: f64) -> Tensor<f64> {
        x * factor
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>) {
        (dy.clone(), None)
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0), 2.0);
}
