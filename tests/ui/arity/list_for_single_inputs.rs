// backward returns a list where forward has single tensors
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone(), dy.clone()]
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Op::apply(&x, &x);
}
