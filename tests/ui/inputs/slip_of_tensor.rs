// a misspelt `Tensor`, in a signature without another tensor
use autograd_core::prelude::*;

#[py_layer]
impl Input {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tenser<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Output {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (usize, Tensors<f64>) {
        (1, x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
