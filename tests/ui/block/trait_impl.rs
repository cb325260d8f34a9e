// a trait impl
use autograd_core::prelude::*;

#[py_layer]
impl Clone for Op {
    fn clone(&self) -> Self {
        Op
    }
}

fn main() {}
