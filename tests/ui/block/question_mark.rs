// `?` in a function that returns no `Result`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.try_reshape([4])?
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let x = ctx.saved_tensor();
        dy.try_reshape(x.shape())?.try_mul(x)?
    }
}

#[py_layer]
impl Named {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { a: dy.clone(), b: dy.try_reshape([2, 2])? }
    }

    fn jvp(
        _ctx: &JvpContext<Self>,
        _a: &Tensor<f64>,
        _b: &Tensor<f64>,
        da: &Tensor<f64>,
        db: &Tensor<f64>,
    ) -> Tensor<f64> {
        da.try_add(db)?
    }
}

fn main() {
    let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    Op::apply(&x);
    Named::apply(&x, &x);
}
