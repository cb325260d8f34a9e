// `Self::Saved` and `Self::Attrs` are the types that the block declares
use autograd_core::prelude::*;
use support::gradient;

#[py_layer]
impl Scale {
    type Saved = Tensor<f64>;
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Self::Saved, by: Self::Attrs) -> Self::Saved {
        let by: Self::Attrs = by;
        ctx.save_for_backward(x);
        ctx.set_attrs(by);
        x * by
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x: &Self::Saved = ctx.saved_tensor();
        Self::scaled(dy, ctx.attrs()) + x * 0.0
    }

    fn scaled(dy: &Self::Saved, by: &Self::Attrs) -> Tensor<f64> {
        dy * *by
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::from(vec![1.0, 2.0]);
    x.set_stop_gradient(false);
    Scale::apply(&x, 3.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0, 3.0]);
}
