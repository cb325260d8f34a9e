// `Self::Grads` is `Grads`
use autograd_core::prelude::*;

#[py_layer]
impl Product {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Self::Grads {
        let (x, w) = ctx.saved_tensor();
        Self::Grads { w: dy * x, x: dy * w }
    }
}

#[test]
fn compiles_and_runs() -> autograd_core::Result<()> {
    let (x, w) = (Tensor::<f64>::from(2.0), Tensor::<f64>::from(3.0));
    x.set_stop_gradient(false);
    Product::apply(&x, &w).backward()?;
    assert_eq!(x.grad().unwrap().item(), 3.0);
    Ok(())
}
