// set_materialize_grads takes a bool
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_materialize_grads("no");
        x * 3.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: Option<&Tensor<f64>>) -> Option<Tensor<f64>> {
        dy.map(|dy| dy * 3.0)
    }
}

fn main() {
    let _ = Op::apply(&Tensor::from(1.0));
}
