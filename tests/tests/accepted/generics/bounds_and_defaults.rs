// an op generic over its element type, called for both
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl<T: Float> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let s = Tensor::<f32>::from(vec![1.0]);
    s.set_stop_gradient(false);
    Op::apply(&x).sum().backward().unwrap();
    Op::<f32>::apply(&s).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(s.grad().unwrap().to_vec(), [2.0]);
}
