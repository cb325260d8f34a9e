// `?` where it can return: a `Result`, an `Option`, a closure's own
use autograd_core::prelude::*;
use support::gradient;

type Grad = autograd_core::Result<Tensor<f64>>;

#[py_layer]
impl Fallible {
    type Saved = Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> autograd_core::Result<Tensor<f64>> {
        ctx.save_for_backward(x);
        x.try_mul(2.0)?.try_add(1.0)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> autograd_core::Result<Grads> {
        Ok(Grads { x: dy.try_reshape(ctx.saved_tensor().shape())?.try_mul(2.0)? })
    }
}

#[py_layer]
impl Inner {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let double = |x: &Tensor<f64>| -> Grad { Ok(x.try_mul(1.0)?.try_mul(2.0)?) };
        double(x).unwrap_or_else(|_| x.clone())
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Option<Tensor<f64>> {
        let first = dy.shape().first()?;
        Some(dy * 2.0 * (*first as f64 / 2.0))
    }
}

#[test]
fn compiles_and_runs() -> autograd_core::Result<()> {
    let x = Tensor::from([1.0, 2.0]);
    x.set_stop_gradient(false);
    Inner::apply(&Fallible::apply(&x)?).sum().backward()?;
    assert_eq!(gradient(&x), [4.0, 4.0]);
    Ok(())
}
