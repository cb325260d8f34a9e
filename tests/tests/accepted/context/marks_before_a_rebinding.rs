// an input marked before its name is bound again, and one that an `if` chooses
use autograd_core::prelude::*;

#[py_layer]
impl Rebound {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.mark_not_inplace(x);
        let x = x * 2.0;
        x
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Chosen {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        k: f64,
    ) -> Tensor<f64> {
        let chosen = if k * 2.0 > 1.0 { x } else { w };
        ctx.mark_not_inplace(chosen);
        x * w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy.clone(), dy.clone())
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![1.5]);
    assert_eq!(Rebound::apply(&x).to_vec(), [3.0]);
    assert_eq!(Chosen::apply(&x, &x, 1.0).to_vec(), [2.25]);
}
