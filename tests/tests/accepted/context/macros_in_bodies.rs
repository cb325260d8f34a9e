// calls on the context inside macros
use autograd_core::prelude::*;

macro_rules! save {
    ($ctx:ident, $what:expr) => {
        $ctx.save_for_backward($what)
    };
}

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        save!(ctx, x);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [3.0]);
