// functions with a gradient are those of floats
use autograd_core::prelude::*;

fn normalized<T: Float>(x: &Tensor<T>) -> Tensor<T> {
    x / x.sum()
}

fn main() {
    let counts = Tensor::<i64>::from(vec![1, 2]);
    let _ = normalized(&counts);
}
