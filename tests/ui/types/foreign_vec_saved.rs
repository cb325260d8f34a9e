// another type that is called `Vec`, saved
use autograd_core::prelude::*;

struct Vec<T>(T);

#[py_layer]
impl Op {
    type Saved = Vec<Tensor<f64>>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(Vec(x.clone()));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * &ctx.saved_tensor().0
    }
}

fn main() {}
