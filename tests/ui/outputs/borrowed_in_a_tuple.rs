// an output by reference in a tuple, without a lifetime
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, &[Tensor<f64>]) {
        (x * 2.0, &[])
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, _dz: &[Tensor<f64>]) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {
    let x = Tensor::<f64>::ones([2]);
    let (_, list) = Op::apply(&x);
    let _ = list.len();
}
