// a type parameter that is kept needs bounds, and one that is saved is no tensor
use autograd_core::prelude::*;

#[py_layer]
impl<A: Clone> Kept<A> {
    type Attrs = Vec<A>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, a: A) -> Tensor<f64> {
        ctx.set_attrs(vec![a.clone(), a]);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let _ = ctx.attrs();
        dy * 2.0
    }
}

#[py_layer]
impl<A> Stored<A> {
    type Saved = A;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, a: A) -> Tensor<f64> {
        ctx.save_for_backward(a);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let _ = ctx.saved_tensor();
        dy * 2.0
    }
}

fn main() {}
