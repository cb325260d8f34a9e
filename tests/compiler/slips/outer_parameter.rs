// says: try introducing a local generic parameter here
// says: impl<T> Op
use autograd_core::prelude::*;
fn outer<T: Float>(x: &Tensor<T>) {
    #[py_layer]
    impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> { dy * 2.0 }
    }
}
fn main() { outer(&Tensor::<f64>::from(1.0)); }
//- plain
use autograd_core::prelude::*;
fn outer<T: Float>(x: &Tensor<T>) {
    struct Op;
    impl Op {
        fn forward(x: &Tensor<T>) -> Tensor<T> { x * 2.0 }
        fn backward(dy: &Tensor<T>) -> Tensor<T> { dy * 2.0 }
        fn apply(x: &Tensor<T>) { Self::forward(x); }
    }
}
fn main() { outer(&Tensor::<f64>::from(1.0)); }
