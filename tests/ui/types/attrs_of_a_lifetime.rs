// attributes that borrow for a lifetime of the impl
use autograd_core::prelude::*;

struct Names<'a>(&'a str);

#[py_layer]
impl<'a> Op<'a> {
    type Attrs = (f64, Names<'a>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, name: &'a str) -> Tensor<f64> {
        ctx.set_attrs((2.0, Names(name)));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (by, _) = ctx.attrs();
        dy * *by
    }
}

#[py_layer]
impl<'a> Reference<'a> {
    type Attrs = Option<&'a str>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, name: &'a str) -> Tensor<f64> {
        ctx.set_attrs(Some(name));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let _ = ctx.attrs();
        dy * 2.0
    }
}

fn main() {}
