// a generic op whose element type is not bound by `Float`
use autograd_core::prelude::*;

#[py_layer]
impl<T: Element> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy.clone()
    }
}

fn main() {}
