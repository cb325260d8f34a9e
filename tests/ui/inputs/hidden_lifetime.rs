// the lifetime of a plain parameter is written
use autograd_core::prelude::*;

struct Names<'a>(&'a str);

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, names: Names) -> Tensor<f64> {
        x * names.0.len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
