// the context handed to helpers
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        Self::keep(ctx, x);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        Self::kept(ctx) * dy
    }

    fn keep(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) {
        ctx.save_for_backward(x);
    }

    fn kept(ctx: &BackwardContext<Self>) -> Tensor<f64> {
        ctx.saved_tensor().clone()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [3.0]);
