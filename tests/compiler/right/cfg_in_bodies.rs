// what stands behind a `#[cfg]` is not judged
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        #[cfg(unix)]
        ctx.save_for_backward(x);
        #[cfg(not(unix))]
        ctx.save_for_backward(&(x * 2.0));
        x * 2.0
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * ctx.saved_tensor() }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
