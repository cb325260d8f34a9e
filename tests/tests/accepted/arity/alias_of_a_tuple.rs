// an alias of the right tuple
#![deny(warnings)]
use autograd_core::prelude::*;

type Both = (Tensor<f64>, Option<Tensor<f64>>);

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Both {
        (dy * 2.0, Some(dy * 3.0))
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let w = Tensor::<f64>::from(vec![4.0]);
    w.set_stop_gradient(false);
    Op::apply(&x, &w).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [3.0]);
}
