// a parameter that is not sized
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl<N: AsRef<str> + ?Sized> Op<N> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, name: &N) -> Tensor<f64> {
        x * name.as_ref().len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x, "ab").sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
