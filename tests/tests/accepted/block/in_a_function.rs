// ops in functions, of one name
use autograd_core::prelude::*;
use support::{gradient, leaf};

fn twice(x: &Tensor<f64>) -> Tensor<f64> {
    #[py_layer]
    impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
    Op::apply(x)
}

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 3.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    (twice(&x) + Op::apply(&x)).sum().backward().unwrap();
    assert_eq!(gradient(&x), [5.0]);
}
