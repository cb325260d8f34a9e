// a constant parameter
#![deny(warnings)]
use autograd_core::prelude::*;

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
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let ys = Op::<4>::apply(&x);
    ys[3].sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0]);
}
