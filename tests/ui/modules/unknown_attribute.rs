// `#[module(skip)]` is the only such attribute; each other one is an error, and the field is known.
use autograd_core::nn::{Linear, Module};

#[derive(Module)]
struct Net {
    #[module(ignore)]
    hidden: Linear,
    #[module]
    #[module()]
    #[module(skip, skip)]
    out: Linear,
}

fn main() {
    Net { hidden: Linear::new(1, 1), out: Linear::new(1, 1) }.parameters();
}
