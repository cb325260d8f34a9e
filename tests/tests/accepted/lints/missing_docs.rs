// a public crate that requires documentation
#![deny(warnings)]
#![forbid(missing_docs, unsafe_code)]
//! A documented crate.
use autograd_core::prelude::*;

/// A public module.
pub mod ops {
    use autograd_core::prelude::*;

    /// Documented; its functions need no docs of their own.
    #[py_layer]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        pub fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    ops::Op::apply(&x).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
}
