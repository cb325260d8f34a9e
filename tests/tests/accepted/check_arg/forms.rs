// `check(..)` costs nothing outside of tests, and can be combined with other arguments
use autograd_core::prelude::*;

#[py_layer(once_differentiable, check(x = [2, 3], w = [3] in 0.5..2.0), check(x = [3], w = []))]
impl Product {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy * w, w: (dy * x).sum_axes(&[0]) }
    }
}

#[py_layer(elementwise, check(x = [2, 3], slope = 0.1))]
impl Leaky {
    fn forward(x: Real, slope: f64) -> Real {
        x.gt(0.0).select(x, slope * x)
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::from(vec![1.0, 2.0]);
    assert_eq!(Product::apply(&x, &x).to_vec(), [1.0, 4.0]);
    assert_eq!(Leaky::apply(&x, 0.1).to_vec(), [1.0, 2.0]);
}
