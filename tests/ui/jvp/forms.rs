// Inputs and tangents come borrowed, a list as a slice of tensors.
use autograd_core::prelude::*;

#[py_layer]
impl Double {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        list: &[&Tensor<f64>],
        maybe: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let _ = (list, maybe);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, list: vec![dy.clone()], maybe: dy.clone() }
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        x: Tensor<f64>,
        list: &[&Tensor<f64>],
        maybe: &Tensor<f64>,
        dx: Tensor<f64>,
        dlist: &Tensor<f64>,
        dmaybe: &Tensor<f64>,
    ) -> Tensor<f64> {
        x + list[0] + maybe + dx + dlist + dmaybe
    }
}

fn main() {
    Double::apply(&Tensor::from(1.0), &[], None);
}
