// an array of references
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: [&Tensor<f64>; 2]) -> Tensor<f64> {
        xs[0] * xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy * 2.0, dy * 5.0]
    }
}

#[py_layer]
impl OfAnyLength {
    fn forward<const N: usize>(
        ctx: &mut ForwardContext<Self>,
        xs: [&Tensor<f64>; N],
    ) -> Tensor<f64> {
        ctx.set_attrs(N);
        xs.into_iter().fold(Tensor::from(0.0), |sum, x| sum + x)
    }

    type Attrs = usize;

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone(); *ctx.attrs()]
    }
}

#[py_layer]
impl OfOne {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>; 1]) -> Tensor<f64> {
        &xs[0] * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> [Option<Tensor<f64>>; 1] {
        [Some(dy * 2.0)]
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let w = leaf(&[4.0]);
    Op::apply([&x, &w]).sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    assert_eq!(gradient(&w), [5.0]);
    let lists = OfAnyLength::apply([&x, &w, &w]).sum() + OfOne::apply(&[x.clone()]).sum();
    lists.backward().unwrap();
    assert_eq!(gradient(&x), [5.0]);
    assert_eq!(gradient(&w), [7.0]);
}
