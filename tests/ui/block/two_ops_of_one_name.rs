// two ops of one name in one scope are one error
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * ctx.saved_tensor() * 2.0 }
    }
}

/// A third, in another form.
#[py_layer(elementwise)]
impl Op {
    fn forward(x: Real) -> Real {
        x * 3.0
    }
}

mod other {
    use autograd_core::prelude::*;

    // Another scope.
    #[py_layer]
    impl Op {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
}

fn main() {
    let x = Tensor::from(1.0);
    let _ = Op::with().x(&x).apply();
    let _ = Op::try_apply(&x);
}
