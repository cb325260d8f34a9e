// a generic op whose element type may be an integer
use autograd_core::prelude::*;
use autograd_core::Numeric;

#[py_layer]
impl<T: Numeric> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x * T::ONE
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * T::ONE
    }
}

fn main() {}
