// says: the macro makes the struct `Op`, and there is a type `Op` in this scope; remove that type
use autograd_core::prelude::*;
mod inside {
    use super::*;
    #[derive(Debug)]
    pub(crate) enum Op<T> { A(T) }
    fn f() {}
    #[py_layer] impl<T: Float> Op<T> {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy * 2.0 }
    }
}
fn main() {}
