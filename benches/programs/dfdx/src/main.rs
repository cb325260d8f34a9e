//! The document's example, with dfdx and its own tanh.

use dfdx::prelude::*;

fn main() {
    let dev = Cpu::default();
    let data: Tensor<Rank2<2, 3>, f64, _> = dev.sample_normal();
    let grads = data.leaky_trace().tanh().mean().backward();
    println!("{:?}", grads.get(&data).array());
}
