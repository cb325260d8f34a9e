// says: missing `,`
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    fn forward(_: &mut ForwardContext<Self> x: &Tensor<f64>, _: f64) -> Tensor<f64> { x * 2.0 }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {
    Op::apply(&Tensor::from([1.0]), 2.0);
}
