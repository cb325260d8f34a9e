// a type alias beside an op of its name
use autograd_core::prelude::*;

struct Other;
type Op = Other;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Op::with().x(&x).apply();
    let _ = Op::try_apply(&x);
}
