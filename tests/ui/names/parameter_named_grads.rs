// a type parameter with the name of the struct that holds the gradients
use autograd_core::prelude::*;

#[py_layer]
impl<Grads: Float> Op<Grads> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<Grads>) -> Tensor<Grads> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<Grads>) -> Grads {
        Grads { x: dy * 2.0 }
    }
}

fn main() {
    let _ = Op::apply(&Tensor::<f64>::from(1.0));
}
