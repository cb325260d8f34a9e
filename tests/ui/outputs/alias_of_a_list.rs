// a list of tensors behind an alias
use autograd_core::prelude::*;

type Many = Vec<Tensor<f64>>;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Many) {
        (x * 2.0, vec![x * 3.0])
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
