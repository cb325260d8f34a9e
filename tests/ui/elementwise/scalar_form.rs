// `scalar_op!` without gradients does not name its inputs
use autograd_core::prelude::*;

scalar_op!(Softplus: y = (1.0 + x.exp()).ln());

fn main() {}
