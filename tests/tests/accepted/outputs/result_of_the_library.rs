// the library's own `Result`
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> autograd_core::Result<(Tensor<f64>, f64)> {
        Ok((x * 2.0, 1.0))
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        Ok(dy * 2.0)
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (y, one) = Op::apply(&x).unwrap();
    assert_eq!(one, 1.0);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
