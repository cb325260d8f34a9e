// an attribute kept under one name and read under another
use autograd_core::prelude::*;

struct Factors {
    scale: f64,
}

#[py_layer]
impl Op {
    type Attrs = Factors;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, scale: f64) -> Tensor<f64> {
        ctx.set_attrs(Factors { scale });
        x * scale
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs().scael
    }
}

fn main() {}
