// an op without gradient
use autograd_core::prelude::*;

#[py_layer(no_grad)]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    assert_eq!(Op::apply(&x).to_vec(), [6.0]);
    x.set_stop_gradient(false);
    let error = Op::try_apply(&x).unwrap_err().to_string();
    assert!(error.contains("`x` wants a gradient"), "{error}");
}
