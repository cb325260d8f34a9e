// rustc: --test
// says: cannot test inner items
use autograd_core::prelude::*;
fn outer() {
    #[py_layer(check(x = [2, 3]))]
    impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x.clone() }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> { dy.clone() }
    }
    let _: Unknown;
}
