// says: there is an op `Soft` above in this scope
use autograd_core::prelude::*;
use autograd_core::scalar_op;
scalar_op!(Soft: y = x * 2.0, dx = dy * 2.0);
scalar_op!(Soft: y = x * 2.0, dx = dy * 2.0);
fn main() { Soft::apply(&Tensor::<f64>::from(1.0)); }
