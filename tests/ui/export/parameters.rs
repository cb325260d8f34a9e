// parameters that a host cannot choose or give
use autograd_core::prelude::*;

#[py_layer(export)]
impl<T: Float> Unnamed<T> {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        x + x
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy + dy
    }
}

#[py_layer(export(f32, f64))]
impl<T: Float, const N: usize> Second<T, N> {
    fn forward(_: &mut ForwardContext<Self>, x: [&Tensor<T>; N]) -> Tensor<T> {
        x[0] + x[0]
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<T>) -> [Option<Tensor<T>>; N] {
        [(); N].map(|()| Some(dy + dy))
    }
}

#[py_layer(export)]
impl Plain {
    fn forward<F: Fn() -> f64>(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        by: F,
        pair: (f64, f64),
        axes: &[usize],
    ) -> Tensor<f64> {
        x * (by() + pair.0 + axes.len() as f64)
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.clone()
    }
}

fn main() {}
