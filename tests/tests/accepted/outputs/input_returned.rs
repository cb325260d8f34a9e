// an input that is returned becomes a separate tensor
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let (a, b) = Op::apply(&x);
    (a + b).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0]);
}
