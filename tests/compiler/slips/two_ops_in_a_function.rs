// says: there is an op `Op` above in this scope
//! Two ops in a function, the first with docs, arguments and a parameter.
use autograd_core::prelude::*;
#[cfg(all())]
fn main() {
    /// ä
    #[py_layer(no_grad)] impl<T: Float> Op<T> {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x * 2.0 }
    }
    #[py_layer] impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
}
