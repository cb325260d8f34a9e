// saved in `forward` and read in `backward` without declarations: reported where it is saved
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, axes: Vec<usize>) -> Tensor<f64> {
        let y = x.square();
        ctx.save_for_backward((x, &y));
        ctx.set_attrs(axes);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, _y) = ctx.saved_tensor();
        let first = ctx.attrs()[0];
        dy * x * first as f64
    }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, vec![0]);
    let _ = Op::with().x(&x).axes(vec![0]).apply();
}
