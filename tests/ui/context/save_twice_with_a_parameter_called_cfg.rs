// `save_for_backward` twice, in a forward with a parameter that is called `cfg`
use autograd_core::prelude::*;

#[py_layer]
impl Scaled {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, cfg: f64) -> Tensor<f64> {
        ctx.save_for_backward(x);
        let y = x * cfg;
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

fn main() {}
