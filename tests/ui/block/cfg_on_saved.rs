// `#[cfg]` on `type Saved`, and `#[cfg_attr]` on a parameter
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    #[cfg(all())]
    type Saved = ();

    fn forward(_ctx: &mut ForwardContext<Self>, #[cfg_attr(all(), stop_gradient)] x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
