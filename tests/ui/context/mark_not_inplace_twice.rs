// `mark_not_inplace` twice on one path
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.mark_not_inplace(x);
        ctx.mark_not_inplace(w);
        x * w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 3.0)
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}
