// a number behind an alias cannot be saved
use autograd_core::prelude::*;

type Number = f64;

#[py_layer(allow(unread_saved))]
impl Op {
    type Saved = Number;

    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        _ctx.save_for_backward(2.0);
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
