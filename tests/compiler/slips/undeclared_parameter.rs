// says: cannot find type `T` in this scope
use autograd_core::prelude::*;
#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x * x }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy.clone() }
}
fn main() { let _ = Op::apply(&Tensor::from(1.0)); }
//- plain
use autograd_core::prelude::*;
struct Op;
impl Op {
    fn forward(x: &Tensor<T>) -> Tensor<T> { x * x }
    fn backward(dy: &Tensor<T>) -> Tensor<T> { dy.clone() }
}
fn main() { let _ = Op::forward(&Tensor::from(1.0)); }
