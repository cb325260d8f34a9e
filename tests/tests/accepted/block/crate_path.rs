// the library under another path
use autograd_core::prelude::*;

mod vendor {
    pub use autograd_core as library;
}

#[py_layer(crate = crate::block::crate_path::vendor::library)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [2.0]);
