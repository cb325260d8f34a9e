// attributes whose type hides a lifetime
use autograd_core::prelude::*;

struct Names<'a>(&'a str);

#[py_layer]
impl Op {
    type Attrs = Names;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(Names("a"));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs().0.len() as f64
    }
}

fn main() {}
