// an alias of `Result` around the output is named
use autograd_core::prelude::*;

type Outcome<T> = Result<T, String>;

#[py_layer]
impl Doubled {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Outcome<Tensor<f64>> {
        Ok(x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}
