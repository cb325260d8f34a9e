// two gradients of one input, and a library at two paths
use autograd_core::prelude::*;
use autograd_core::scalar_op;

scalar_op!(Twice: y = x * 2.0, dx = dy * 2.0, dx = dy);

scalar_op!(Paths: y = x * 2.0, dx = dy * 2.0, crate = autograd_core, crate = autograd_core);

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Twice::apply(&x);
}
