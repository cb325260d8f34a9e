// B38: apply is called with another number of arguments than forward has
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
