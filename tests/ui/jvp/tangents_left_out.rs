// `jvp` of two inputs takes their two tangents as well
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }

    fn jvp(_ctx: &JvpContext<Self>, tx: &Tensor<f64>, tw: &Tensor<f64>, tz: &Tensor<f64>) -> Tensor<f64> {
        tx + tw + tz
    }
}

fn main() {}
