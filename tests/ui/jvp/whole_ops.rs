// A `jvp` in an op that it does not fit.
use autograd_core::prelude::*;

CASE

fn main() {
    Double::apply(&Tensor::from(1.0));
}

//= The context of `jvp` is not that of `backward`.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &JvpContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}

//= An op without a gradient has no `jvp`.
#[py_layer(no_grad)]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}

//= Two outputs have two tangents.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}
