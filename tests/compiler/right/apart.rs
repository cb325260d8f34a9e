// a macro that puts each of two blocks of one name into a module of its own
#![deny(warnings)]
use autograd_core::prelude::*;

macro_rules! apart { ($a:item $b:item) => { mod a { use super::*; $a } mod b { use super::*; $b } } }

apart! {
    #[py_layer]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
    #[py_layer]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 3.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 3.0 }
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (a::Op::apply(&x), b::Op::apply(&x));
}
