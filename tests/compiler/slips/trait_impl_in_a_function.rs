// says: #[py_layer] needs an impl block of the op itself, without a trait; write `impl Op`
use autograd_core::prelude::*;
fn outer() {
    struct Op;
    trait Named {}
    #[py_layer(elementwise)]
    impl Named for Op {
        fn forward(x: Real) -> Real { x * 2.0 }
    }
}
fn main() {}
//- plain
fn outer() {
    struct Op;
    trait Named {}
    impl Named for Op {
        fn forward(x: f64) -> f64 { x * 2.0 }
    }
}
fn main() {}
