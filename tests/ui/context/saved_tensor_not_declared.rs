// `saved_tensor()` of an op without `type Saved`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        let (a, b) = ctx.saved_tensor();
        let scaled = dy * ctx.saved_tensor().square();
        scaled * a + b
    }
}

fn main() {
    let x = Tensor::<f32>::from(1.0);
    let _ = Op::apply(&x);
    let _ = Op::with().x(&x).apply();
}
