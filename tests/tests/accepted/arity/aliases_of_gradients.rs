// aliases of the right types
use autograd_core::prelude::*;

type T64 = Tensor<f64>;
type G = Option<T64>;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &T64) -> G {
        Some(dy * 2.0)
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [2.0]);
