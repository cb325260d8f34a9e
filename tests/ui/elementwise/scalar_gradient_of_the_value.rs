// the gradient of a name that is not an input, and a value with another name
use autograd_core::prelude::*;

scalar_op!(Square: y = x * x, dz = 2.0 * x * dy);

scalar_op!(Product: z = x * y, dx = y * dz, dy = x * dz);

fn main() {}
