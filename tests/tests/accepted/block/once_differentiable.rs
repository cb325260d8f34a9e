// an op that is differentiable once
use autograd_core::prelude::*;

#[py_layer(once_differentiable)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [2.0]);
