// the library under another name
#[allow(unused_imports)]
use autograd_core::prelude::*;
use support::gradient;

mod ops {
    use renamed::prelude::*;

    #[py_layer(crate = renamed)]
    impl Op {
        pub fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
}

#[test]
fn compiles_and_runs() {
    let x = renamed::Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    ops::Op::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
