// an input that is returned becomes a separate tensor
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        ctx.mark_not_inplace(x);
        (x.clone(), x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da + db * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (a, b) = Op::apply(&x);
    (a + b).sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}
