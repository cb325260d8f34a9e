// a type called `Grads` beside ops
use autograd_core::prelude::*;

#[allow(dead_code)]
struct Grads;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0 }
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [2.0]);
