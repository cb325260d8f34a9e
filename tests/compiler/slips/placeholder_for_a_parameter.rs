// says: the placeholder `_` is not allowed
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, k: _) -> Tensor<f64> { x * k }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
#[py_layer]
impl Only {
    fn forward(_: &mut ForwardContext<Self>, x: _) -> Tensor<f64> { x * 2.0 }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}
fn main() {}
//- plain
struct Tensor<T>(T);
fn forward(x: &Tensor<f64>, k: _) -> Tensor<f64> { todo!() }
fn only(x: _) -> Tensor<f64> { todo!() }
fn main() {}
