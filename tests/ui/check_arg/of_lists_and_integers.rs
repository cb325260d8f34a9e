// a list of tensors by one shape, a range behind a list, integers that cannot be guessed
use autograd_core::prelude::*;

#[py_layer(
    check(xs = [2, 3], index = [3]),
    check(xs = [[2], [3]] in 0.5..2.0, index = [3] in 0..2),
    check(),
)]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        xs: &[Tensor<f64>],
        #[stop_gradient] index: &Tensor<i64>,
        #[default(1.0)] by: f64,
    ) -> Tensor<f64> {
        xs[0].index_select(0, index) * by
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone()]
    }
}

fn main() {}
