// says: `backward` returns 2 gradients
#![forbid(dead_code, deprecated, non_snake_case, non_upper_case_globals, unused_variables)]
use autograd_core::prelude::*;
#[py_layer]
impl Two {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) { (dy * 2.0, dy * 2.0) }
}
fn main() { let _ = Two::apply(&Tensor::<f64>::from(1.0)); }
