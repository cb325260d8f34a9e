// an unused helper gets the usual warning, also if gradients have names
#![deny(dead_code)]
use autograd_core::prelude::*;

#[py_layer]
impl Product {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((a, b));
        a * b
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (a, b) = ctx.saved_tensor();
        Grads { a: dy * b, b: dy * a }
    }

    fn half(x: &Tensor<f64>) -> Tensor<f64> {
        x * 0.5
    }
}

fn main() {
    let x = Tensor::from(1.0);
    drop(Product::apply(&x, &x));
}
