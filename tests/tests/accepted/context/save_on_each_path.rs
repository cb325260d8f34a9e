// saved once on every path: in both arms, before and after an early return, in a `match` and in a loop that ends
use autograd_core::prelude::*;
use support::gradients;

#[py_layer]
impl InBothArms {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        if x.len() > 1 {
            ctx.save_for_backward(x);
        } else {
            ctx.save_for_backward(&(x * 2.0));
        }
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[py_layer]
impl BeforeAnEarlyReturn {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        if x.len() > 1 {
            ctx.save_for_backward(x);
            return x * 2.0;
        }
        let Some(y) = Some(x * 3.0) else { todo!() };
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[py_layer]
impl InAMatch {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        match x.len() {
            0 => panic!("empty"),
            1 => ctx.save_for_backward(x),
            _ => loop {
                ctx.save_for_backward(x);
                break;
            },
        }
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[test]
fn compiles_and_runs() {
    assert_eq!(gradients(|[x]| InBothArms::apply(x), [3.0]), [6.0]);
    assert_eq!(gradients(|[x]| BeforeAnEarlyReturn::apply(x), [3.0]), [9.0]);
    assert_eq!(gradients(|[x]| InAMatch::apply(x), [3.0]), [3.0]);
}
