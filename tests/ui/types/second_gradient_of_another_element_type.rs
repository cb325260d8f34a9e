// the gradient of the second output has other elements
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f32>) {
        (x * 2.0, x.cast())
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: Option<&Tensor<f64>>) -> Tensor<f64> {
        db.cloned().unwrap_or_else(|| da.clone())
    }
}

fn main() {}
