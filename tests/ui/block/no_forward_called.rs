// an op without `forward` can be called
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 3.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let y = Op::apply(&x, &x);
    let _ = y.sum() * 2.0;
}
