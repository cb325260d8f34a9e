// ops and types of one name that are apart: in a module, a function, a text, or another configuration
#![deny(warnings)]
#![allow(dead_code)]
use autograd_core::prelude::*;
use autograd_core::scalar_op;

macro_rules! op {
    ($name:ident) => {
        #[py_layer]
        impl $name {
            pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
            fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
        }
    };
}

mod one {
    use super::*;
    op!(Op);
    #[py_layer]
    impl Other {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
}

mod two {
    use super::*;
    #[py_layer]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
    #[py_layer]
    impl Ops {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
    }
}

const TEXT: &str = "#[py_layer] impl Op {} struct Op;";
fn local() {
    struct Op;
}

scalar_op!(Uses: y = x * Op::FACTOR, dx = dy * Op::FACTOR);
impl Op {
    const FACTOR: f64 = 2.0;
}
// #[py_layer] impl Op {}
#[py_layer]
impl Op {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}

#[cfg(any())]
#[py_layer]
impl Configured {}
#[cfg(all())]
#[py_layer]
impl Configured {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}

#[cfg(any())]
pub struct OfAType;
#[cfg(all())]
#[py_layer]
impl OfAType {
    pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy * 2.0 }
}

#[cfg(any())]
scalar_op!(Outside: y = x, dx = dy);
#[cfg(all())]
scalar_op!(Outside: y = -x, dx = -dy);

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (one::Op::apply(&x), one::Other::apply(&x), two::Op::apply(&x), two::Ops::apply(&x));
    let _ = (Op::apply(&x), Uses::apply(&x), Configured::apply(&x), OfAType::apply(&x), Outside::apply(&x));
}
