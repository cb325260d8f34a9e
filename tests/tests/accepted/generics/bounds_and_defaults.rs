// an op generic over its element type, called for both
use autograd_core::prelude::*;
use support::{gradient, leaf};

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
    let x = leaf(&[3.0]);
    let s = Tensor::<f32>::from(vec![1.0]);
    s.set_stop_gradient(false);
    Op::apply(&x).sum().backward().unwrap();
    Op::<f32>::apply(&s).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&s), [2.0]);
}
