// A `jvp` that does not fit its op of two inputs.
use autograd_core::prelude::*;

#[py_layer]
impl Product {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy * w, w: dy * x }
    }

CASE
}

fn main() {
    let (x, w) = (Tensor::from(1.0), Tensor::from(2.0));
    Product::apply(&x, &w);
}

//= All inputs come before all tangents.
    fn jvp(
        _ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        dx: &Tensor<f64>,
        w: &Tensor<f64>,
        dw: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * w + dw * x
    }

//= The inputs of `jvp` have the order of `forward`.
    fn jvp(
        _ctx: &JvpContext<Self>,
        w: &Tensor<f64>,
        x: &Tensor<f64>,
        dw: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * w + dw * x
    }

//= Calls that belong to `forward` do not compile in `jvp`.
    fn jvp(
        ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        dx: &Tensor<f64>,
        dw: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        if ctx.needs_input_grad().x { dx * w } else { dw * x }
    }
