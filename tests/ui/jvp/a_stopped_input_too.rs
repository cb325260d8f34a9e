// An input behind `#[stop_gradient]` is no parameter of `jvp`: it comes by `type Saved`.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] mask: &Tensor<f64>,
    ) -> Tensor<f64> {
        x * mask
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        x: &Tensor<f64>,
        mask: &Tensor<f64>,
        dx: &Tensor<f64>,
    ) -> Tensor<f64> {
        dx * x * mask
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0), &Tensor::from(1.0));
}
