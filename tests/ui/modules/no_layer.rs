// a module is a layer by an implementation of `Layer`
use autograd_core::nn::{Linear, Module, Sequential};

#[derive(Module)]
struct Pair {
    first: Linear,
    second: Linear,
}

fn main() {
    let pair = Pair { first: Linear::new(2, 3), second: Linear::new(2, 3) };
    let _ = Sequential::new().then(Linear::new(2, 2)).then(pair);
}
