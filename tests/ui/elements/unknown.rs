// an unsupported element type
use autograd_core::prelude::*;

fn names(_: &Tensor<String>) {}

fn main() {
    let _ = names;
}
