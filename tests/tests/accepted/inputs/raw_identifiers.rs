// raw identifiers for inputs, plain and tensor
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, r#type: &Tensor<f64>, r#match: f64) -> Tensor<f64> {
        r#type * r#match
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        assert!(ctx.needs_input_grad().r#type);
        Grads { r#type: dy * 2.0 }
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::with().r#match(2.0).r#type(&x).apply().sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
