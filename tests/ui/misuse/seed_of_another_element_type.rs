// a seed with other elements than its output
use autograd_core::prelude::*;

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from([1.0_f64, 2.0]);
    x.set_stop_gradient(false);
    x.tanh().backward_with(&Tensor::<f32>::ones([2]))
}
