// a generic op whose element type has no bound
use autograd_core::prelude::*;

#[py_layer]
impl<T> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * 2.0
    }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
