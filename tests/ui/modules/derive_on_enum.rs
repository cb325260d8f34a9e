// `#[derive(Module)]` is for structs only.
use autograd_core::nn::{Linear, Module};

#[derive(Module)]
enum Either {
    Left(Linear),
    Right,
}

fn main() {
    let either = Either::Left(Linear::new(1, 1));
    either.parameters();
}
