// says: `d1` is no gradient
use autograd_core::prelude::*;
use autograd_core::scalar_op;
scalar_op!(Soft: y = x * 2.0, d1 = dy);
fn main() { Soft::apply(&Tensor::<f64>::from(1.0)); }
