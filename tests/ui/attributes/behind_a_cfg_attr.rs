// an attribute of a parameter behind a `cfg_attr`
use autograd_core::prelude::*;

#[py_layer]
impl Masked {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[cfg_attr(all(), stop_gradient)] w: &Tensor<f64>,
        #[cfg_attr(all(), stop_gradient)] mask: &Tensor<bool>,
        #[cfg_attr(all(), default(2.0))] k: f64,
    ) -> Tensor<f64> {
        let _ = mask;
        x + w * k
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer(elementwise)]
impl Kept {
    fn forward(x: Real, #[cfg_attr(all(), stop_gradient)] keep: Mask) -> Real {
        keep.select(x, 0.0)
    }
}

fn main() {}
