// A number beside a tensor has the tensor's element type, or is an `f64` beside floats.

use autograd_core::Tensor;

fn main() {
    let x = Tensor::from([1_i32, 2]);
    let _ = x.gt_scalar(1_i64);
}
