// a field of `Grads` for an input behind `#[stop_gradient]`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] mask: &Tensor<f64>) -> Tensor<f64> {
        x * mask
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, mask: dy * 3.0 }
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}
