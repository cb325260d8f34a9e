// `unwrap` of an op's result, which is a tensor and no `Result`
use autograd_core::prelude::*;

fn main() {
    let x = Tensor::from([1.0_f64, 2.0]);
    let _ = x.tanh().unwrap();
    let _ = x.show();
}
