// a parameter of the impl has no default
use autograd_core::prelude::*;

#[py_layer]
impl<T: Float = f64> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * 2.0
    }
}

fn main() {}
