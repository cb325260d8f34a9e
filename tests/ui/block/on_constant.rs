// other items under the attribute
use autograd_core::prelude::*;

#[py_layer]
const OP: usize = 1;

#[py_layer]
static ONE: usize = 1;

#[py_layer]
type Alias = usize;

#[py_layer]
use std::fmt;

#[py_layer]
union Both {
    a: u8,
    b: i8,
}

fn main() {}
