// seed 002, the wrong example: forward returns a shape only
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x1: &Tensor<f64>, x2: &Tensor<f64>) -> Vec<usize> {
        let y = x1 + x2;
        y.shape().to_vec()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _shape = Op::apply(&x, &x);
}
