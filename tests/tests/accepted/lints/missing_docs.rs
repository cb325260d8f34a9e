// a public crate that requires documentation
#![forbid(missing_docs, unsafe_code)]
//! A documented crate.

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

compiles_and_runs!(|[x]| ops::Op::apply(x), [3.0] => [2.0]);
