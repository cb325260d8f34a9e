// `type Attrs` holds a tensor in a tuple behind an alias
use autograd_core::prelude::*;

type Both = (f64, Tensor<f64>);

#[py_layer]
impl Op {
    type Attrs = Both;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs((2.0, x.clone()));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs().0
    }
}

fn main() {}
