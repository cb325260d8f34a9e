// says: needs an impl block of the op itself, without a trait
use autograd_core::prelude::*;
struct Op;
trait Other {}
#[py_layer]
impl Other for Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
}
fn main() { Op::apply(&Tensor::<f64>::from(1.0)); }
