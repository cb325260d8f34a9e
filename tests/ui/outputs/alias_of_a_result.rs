// a `Result` behind an alias
use autograd_core::prelude::*;

type Res = Result<Tensor<f64>, String>;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Res {
        Ok(x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
