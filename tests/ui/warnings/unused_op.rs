// an op that nothing calls is warned about as other code that is never used, and one that is called is not
#![deny(dead_code)]

use autograd_core::prelude::*;

#[py_layer]
impl Called {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

#[py_layer]
impl Forgotten {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

fn main() {
    let _ = Called::with().x(&Tensor::from(1.0)).apply();
}
