// A first input that it cannot have.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE
}

fn main() {}

//= all tensor inputs are marked
    fn forward(_ctx: &mut ForwardContext<Self>, #[stop_gradient] x: &Tensor<f64>, #[stop_gradient] n: &Tensor<i64>) -> Tensor<f64> {
        x * n.len() as f64
    }

//= a length that only `forward` knows, in the return type of `backward`
    fn forward<const N: usize>(_ctx: &mut ForwardContext<Self>, xs: [&Tensor<f64>; N]) -> Tensor<f64> {
        xs[0] * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> [Tensor<f64>; N] {
        core::array::from_fn(|_| dy * 2.0)
    }

//= the only tensor input is never differentiated
    fn forward(_ctx: &mut ForwardContext<Self>, #[stop_gradient] x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

//= no error about the gradient of an input that is itself wrong
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, list: Option<&[Tensor<f64>]>) -> Tensor<f64> {
        x * list.map_or(2.0, |list| list.len() as f64)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Option<Vec<Tensor<f64>>>) {
        (dy * 2.0, None)
    }

//= a pattern is no name for a tensor
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, [a, b]: [&Tensor<f64>; 2]) -> Tensor<f64> {
        x * a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Vec<Tensor<f64>>) {
        (dy * 2.0, vec![])
    }

//= two gradients of one name
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
