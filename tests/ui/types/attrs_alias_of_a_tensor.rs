// `type Attrs` holds a tensor behind an alias
use autograd_core::prelude::*;

type T64 = Tensor<f64>;

#[py_layer]
impl Op {
    type Attrs = Option<T64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs(Some(x.clone()));
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
