// a `Result` of one tensor, with its own error type
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[derive(Debug, PartialEq)]
struct Refused;

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        fail: bool,
    ) -> Result<Tensor<f64>, Refused> {
        if fail { Err(Refused) } else { Ok(x * 2.0) }
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    assert_eq!(Op::apply(&x, true).map(|_| ()), Err(Refused));
    Op::apply(&x, false).unwrap().sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
