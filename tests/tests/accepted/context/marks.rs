// marks of several tensors at once
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>, [Tensor<f64>; 2]) {
        let list = [x * 3.0, x * 4.0];
        ctx.mark_not_inplace((x, w));
        ctx.mark_non_differentiable(&list);
        (x.clone(), w.clone(), list)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: &Tensor<f64>,
        db: &Tensor<f64>,
        ds: &[Tensor<f64>],
    ) -> (Tensor<f64>, Tensor<f64>) {
        assert_eq!(ds[0].to_vec(), [0.0]);
        (da.clone(), db.clone())
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    let (a, b, list) = Op::apply(&x, &w);
    assert!(list[0].stop_gradient());
    (a + b).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
    assert_eq!(gradient(&w), [1.0]);
}
