// helpers, constants and inner attributes of functions
use autograd_core::prelude::*;

#[py_layer]
impl Op {
    #[inline]
    #[allow(clippy::missing_panics_doc)]
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * Self::BY * Self::helper::<3>()
    }

    #[cold]
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * Self::BY
    }

    const BY: f64 = 2.0;

    const fn one() -> usize {
        1
    }

    fn helper<const N: usize>() -> f64 {
        (N / N * Self::one()) as f64
    }
}

compiles_and_runs!(|[x]| Op::apply(x), [3.0] => [2.0]);
