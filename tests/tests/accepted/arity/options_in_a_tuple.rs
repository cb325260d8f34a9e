// optional gradients in a tuple, inside a `Result`
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<(Option<Tensor<f64>>, Tensor<f64>), std::convert::Infallible> {
        Ok((Some(dy * 2.0), dy * 3.0))
    }
}

compiles_and_runs!(|[x, w]| Op::apply(x, w), [3.0, 4.0] => [2.0, 3.0]);
