// says: the macro makes the struct `Op`, and there is a type `Op` in this scope; remove that type
use autograd_core::prelude::*;
fn outer() {
    struct Op;
    #[py_layer]
    impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
    let _ = Op::apply(&Tensor::<f64>::from(1.0)) * 2.0;
}
fn main() {}
