// modules and types with the names of the library

#[allow(dead_code, non_camel_case_types)]
mod shadow {
    pub mod autograd_core {}
    pub struct Known;
    pub struct CustomOp;
}
mod ops {
    #[allow(unused_imports)]
    use super::shadow::{CustomOp, Known};
    use ::autograd_core::prelude::*;

    #[py_layer]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
}

compiles_and_runs!(|[x]| ops::Op::apply(x), [3.0] => [2.0]);
