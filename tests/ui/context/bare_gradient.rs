// a bare gradient parameter with `set_materialize_grads(false)`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        ctx.set_materialize_grads(false);
        (x * 2.0, vec![x * 3.0])
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dz: &[Tensor<f64>]) -> Tensor<f64> {
        dy * &dz[0]
    }
}

fn main() {}
