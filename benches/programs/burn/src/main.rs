//! The document's example, with burn.

mod tanh;

use burn::Tensor;
use burn::tensor::{Device, Distribution};

fn main() {
    let device = Device::flex().autodiff();
    let data = Tensor::<2>::random([2, 3], Distribution::Normal(0.0, 1.0), &device).require_grad();
    let grads = tanh::cus_tanh(data.clone()).mean().backward();
    println!("{}", data.grad(&grads).expect("data wants a gradient"));
}
