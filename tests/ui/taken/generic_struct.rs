// a generic struct beside a generic op of its name
use autograd_core::prelude::*;

struct Op<T>(T);

#[py_layer]
impl<T: Float> Op<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x + x
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy + dy
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Op::with().x(&x).apply();
    let _ = Op::try_apply(&x);
}
