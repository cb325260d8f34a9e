// bool tensors have no arithmetic
use autograd_core::Numeric;
use autograd_core::prelude::*;

fn total<T: Numeric>(x: &Tensor<T>) -> Tensor<T> {
    x.sum()
}

fn main() {
    let _ = total(&Tensor::from(vec![true, false]));
}
