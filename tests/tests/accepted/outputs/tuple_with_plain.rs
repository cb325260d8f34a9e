// tensors and plain values mixed
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> (usize, Tensor<f64>, String, Tensor<f64>, Option<f64>) {
        (x.len(), x * 2.0, "s".to_owned(), x * 3.0, None)
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        da: &Tensor<f64>,
        db: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        assert!(db.is_none());
        da * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (n, a, s, _b, none) = Op::apply(&x);
    assert_eq!((n, s.as_str(), none), (1, "s", None));
    a.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
