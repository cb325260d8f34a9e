// a type parameter that is a function cannot be saved
use autograd_core::prelude::*;

struct Held<F>(F);

#[py_layer]
impl<F: Fn(f64) -> f64> Op<F> {
    type Saved = Held<F>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: F) -> Tensor<f64> {
        ctx.save_for_backward(Held(f));
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (ctx.saved_tensor().0)(2.0)
    }
}

fn main() {}
