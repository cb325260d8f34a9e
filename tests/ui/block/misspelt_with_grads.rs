// misspelt `backward` and return types, with gradients by name
use autograd_core::prelude::*;

#[py_layer]
impl Misspelt {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backwards(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0 }
    }
}

#[py_layer]
impl Untyped {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        Grads { x: dy * 2.0 }
    }
}

#[py_layer]
impl Lower {
    type saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        2.0 * ctx.saved_tensor() * dy
    }
}

#[py_layer]
impl Field {
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: f64) -> Tensor<f64> {
        ctx.by = by;
        x * by
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * *ctx.attrs()
    }
}

fn main() {}
