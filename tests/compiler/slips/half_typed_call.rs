// says: expected `;`
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    type Saved = Tensor<f64>;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save
        let y = x * 2.0;
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * ctx.saved_tensor() }
}
fn main() { Op::apply(&Tensor::<f64>::from(1.0)); }
