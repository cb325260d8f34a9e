// `type Attrs` is a tensor
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Attrs = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(x.clone());
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
