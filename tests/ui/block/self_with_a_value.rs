// an op has no values
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(&self, _ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * self.alpha
    }

    fn backward(&self, _ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * self.alpha
    }
}

fn main() {}
