// a mistake in a generic op is one error: the bodies of its functions are not reported too
use autograd_core::prelude::*;

#[py_layer]
impl<T> WithoutABound<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        ctx.saved_tensor() * dy * 2.0
    }
}

#[py_layer]
impl<T: Float> TwoGradients<T> {
    type Saved = Tensor<T>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> (Tensor<T>, Tensor<T>) {
        let x = ctx.saved_tensor();
        (x * dy * 2.0, x * 2.0)
    }
}

fn main() {}
