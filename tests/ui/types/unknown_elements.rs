// element types that a tensor cannot hold
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<usize>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] at: &Tensor<u64>,
    ) -> (Tensor<f64>, Tensor<usize>) {
        ctx.save_for_backward(at);
        (x * at.cast::<f64>(), at.clone())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor().cast::<f64>()
    }
}

fn main() {}
