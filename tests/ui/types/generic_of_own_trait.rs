// a generic op whose element type has a bound that may not be a float's
use autograd_core::prelude::*;

trait Number: Element {}

#[py_layer]
impl<T: Number> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy.clone()
    }
}

fn main() {}
