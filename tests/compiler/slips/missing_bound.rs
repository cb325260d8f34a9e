// says: a tensor cannot hold elements of type `T`
use autograd_core::prelude::*;
#[derive(Saved)]
struct Kept<T> { w: Tensor<T> }
fn main() {}
