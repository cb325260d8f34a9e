// two foreign tensors are two errors
mod other {
    pub struct Tensor<T>(pub T);
}
use autograd_core::{BackwardContext, ForwardContext, py_layer};
use other::Tensor;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: &Tensor<f32>) -> Tensor<f64> {
        let _ = n;
        Tensor(x.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f32>) {
        (Tensor(dy.0), Tensor(1.0))
    }
}

fn main() {}
