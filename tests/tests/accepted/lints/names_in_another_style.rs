// parameters whose names are in another style cause warnings in the block only, and none if that is allowed
#![deny(warnings, nonstandard_style)]

use autograd_core::prelude::*;

#[allow(non_snake_case, reason = "the names of the formula")]
#[py_layer]
impl Linear {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        X: &Tensor<f64>,
        W: &Tensor<f64>,
        #[default(2.0)] Scale: f64,
    ) -> Tensor<f64> {
        ctx.save_for_backward((X, W));
        X * W * Scale
    }

    fn backward(ctx: &BackwardContext<Self>, dY: &Tensor<f64>) -> Grads {
        let (X, W) = ctx.saved_tensor();
        let needs = ctx.needs_input_grad();
        assert!(needs.X && !needs.W);
        Grads { X: dY * W * 2.0, W: dY * X * 2.0 }
    }
}

#[allow(non_snake_case, reason = "the names of the formula")]
#[py_layer]
impl Product {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        left__side: &Tensor<f64>,
        R: &Tensor<f64>,
    ) -> Tensor<f64> {
        ctx.save_for_backward((left__side, R));
        left__side * R
    }

    fn backward(ctx: &BackwardContext<Self>, dY: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (a, b) = ctx.saved_tensor();
        assert!(ctx.needs_input_grad().R);
        (dY * b, dY * a)
    }
}

#[test]
fn compiles_and_runs() {
    let (x, w) = (Tensor::from(3.0), Tensor::from(5.0));
    x.set_stop_gradient(false);
    let y = Linear::with().X(&x).W(&w).apply();
    Product::with().R(&y).left__side(&w).apply().backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 50.0);
}
