// a constant parameter
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl<const N: usize> Op<N> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> [Tensor<f64>; N] {
        std::array::from_fn(|i| x * i as f64)
    }

    fn backward(_ctx: &BackwardContext<Self>, ds: &[Tensor<f64>]) -> Tensor<f64> {
        assert_eq!(ds.len(), N);
        &ds[N - 1] * (N - 1) as f64
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let ys = Op::<4>::apply(&x);
    ys[3].sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}
