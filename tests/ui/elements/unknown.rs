// an element type that there is not
use autograd_core::prelude::*;

fn names(_: &Tensor<String>) {}

fn main() {
    let _ = names;
}
