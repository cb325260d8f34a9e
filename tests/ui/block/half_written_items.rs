// unfinished items: the items around them are still parsed
use autograd_core::prelude::*;

#[py_layer]
impl Typeless {
    type Saved = ;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[py_layer]
impl Stray {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    let factor = 2.0;

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Typeless::with().x(&x).apply();
    let _ = Stray::with().x(&x).apply();
}
