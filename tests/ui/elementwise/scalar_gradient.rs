// a gradient of `scalar_op!` is named after its input
use autograd_core::prelude::*;

scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), grad = dy / (1.0 + (-x).exp()));

fn main() {}
