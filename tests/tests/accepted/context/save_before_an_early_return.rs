// saved before an early return, and after it
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        if x.len() > 1 {
            ctx.save_for_backward(x);
            return x * 2.0;
        }
        let Some(y) = Some(x * 3.0) else { todo!() };
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [9.0]);
