// a closure in `type Attrs` is boxed, and goes to other threads
use std::sync::Arc;

use autograd_core::prelude::*;

#[py_layer]
impl Boxed {
    type Attrs = Box<dyn Fn(f64) -> f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: Box<dyn Fn(f64) -> f64>) -> Tensor<f64> {
        ctx.set_attrs(f);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs()(2.0)
    }
}

#[py_layer]
impl Shared {
    type Attrs = (f64, Arc<dyn Fn(f64) -> f64 + Send>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.set_attrs((1.0, Arc::new(|x| x)));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs().1(2.0)
    }
}

#[py_layer]
impl Unsized {
    type Attrs = dyn Fn(f64) -> f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: Box<dyn Fn(f64) -> f64>) -> Tensor<f64> {
        ctx.set_attrs(f);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs()(2.0)
    }
}

#[py_layer]
impl Opaque {
    type Attrs = impl Fn(f64) -> f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: impl Fn(f64) -> f64) -> Tensor<f64> {
        ctx.set_attrs(f);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.attrs()(2.0)
    }
}

fn main() {}
