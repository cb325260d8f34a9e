// an integer output whose element type has another name
use autograd_core::prelude::*;

type Index = i64;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<Index>) {
        (x * 2.0, x.cast())
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, _dn: &Tensor<Index>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
