// says: a tensor cannot hold elements of type `T`
use autograd_core::nn::Module;
use autograd_core::prelude::*;
#[derive(Saved, Module)]
struct Wrong<T: Clone> { w: Vec<Tensor<T>>, b: Tensor<T> }
#[derive(Saved)]
struct Unused<T> { x: Tensor<f64> }
#[derive(Saved, Module)]
struct Two<T, U> { w: Tensor<T>, b: Option<Tensor<U>> }
fn main() {}
//- plain
use autograd_core::prelude::*;
struct Wrong<T: Clone> { w: Vec<Tensor<T>>, b: Tensor<T> }
struct Unused<T> { x: Tensor<f64> }
struct Two<T, U> { w: Tensor<T>, b: Option<Tensor<U>> }
fn main() {}
