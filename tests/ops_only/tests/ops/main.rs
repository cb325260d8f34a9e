//! What the macros make needs no default feature: `cargo test -p tests-ops-only` compiles it without
//! them. (A build of the whole workspace has them.)

mod asked_to_verify;

use autograd_core::prelude::*;

#[derive(Saved)]
struct Kept<T: Float> {
    x: Tensor<T>,
}

#[py_layer(check(x = [2, 3] in 0.5..2.0, by = 3.0, bias = None), check(x = [3], by = -1.0, bias = [3]))]
impl<T: Float> Scaled<T> {
    type Saved = Kept<T>;
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        by: f64,
        bias: Option<&Tensor<T>>,
    ) -> Tensor<T> {
        ctx.save_for_backward(Kept { x: x.clone() });
        ctx.set_attrs(by);
        let y = x.square() * by;
        bias.map_or(y.clone(), |bias| y + bias)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads {
        let by = 2.0 * ctx.attrs();
        Grads { x: dy * &ctx.saved_tensor().x * by, bias: dy.clone() }
    }
}

#[py_layer]
impl Exp {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }

    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * ctx.saved_tensor()
    }
}

#[py_layer(elementwise, check(x = [4], slope = 0.5))]
impl Leaky {
    fn forward<L: Lane>(x: Real<L>, slope: f64) -> Real<L> {
        x.max(0.0) + x.min(0.0) * slope
    }
}

scalar_op!(Softplus: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp()));

#[test]
fn ops_run_and_have_gradients() {
    let x = Tensor::from(vec![1.0, 2.0]);
    x.set_stop_gradient(false);
    let y = Leaky::apply(&Exp::apply(&Scaled::apply(&x, 3.0, None)), 0.5);
    Softplus::apply(&y).sum().backward().unwrap();
    // y = exp(3 x²), and softplus of so large a number is the number.
    let expected = |x: f64| 6.0 * x * (3.0 * x * x).exp();
    let found = x.grad().unwrap().to_vec();
    assert!((found[0] / expected(1.0) - 1.0).abs() < 1e-8, "{found:?}");
    assert!((found[1] / expected(2.0) - 1.0).abs() < 1e-8, "{found:?}");
}
