// `backward` takes 1 gradient, but `forward` has 2 tensor outputs
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize, Tensor<f32>) {
        (x * 2.0, 1, x.cast())
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let (_y, _one, _z) = Op::apply(&x);
}
