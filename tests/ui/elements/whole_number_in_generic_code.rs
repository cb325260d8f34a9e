// A whole number on the right in code that is generic over the element type.
use autograd_core::{Float, Tensor};

fn shifted<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    x + 1
}

fn main() {
    let _ = shifted(&Tensor::from([1.0]));
}
