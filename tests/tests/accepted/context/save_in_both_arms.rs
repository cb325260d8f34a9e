// saved once on every path
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        if x.len() > 1 {
            ctx.save_for_backward(x);
        } else {
            ctx.save_for_backward(&(x * 2.0));
        }
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [6.0]);
