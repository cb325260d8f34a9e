// `scalar_op!` without gradients does not say what its inputs are
use autograd_core::prelude::*;

scalar_op!(Softplus: y = (1.0 + x.exp()).ln());

fn main() {}
