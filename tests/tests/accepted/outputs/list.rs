// a list of tensors whose length is known at run time only
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: usize) -> Vec<Tensor<f64>> {
        (0..n).map(|i| x * i as f64).collect()
    }

    fn backward(_ctx: &BackwardContext<Self>, ds: &[Option<Tensor<f64>>]) -> Tensor<f64> {
        let mut sum = Tensor::zeros([1]);
        for (i, d) in ds.iter().enumerate() {
            if let Some(d) = d {
                sum = sum + d * i as f64;
            }
        }
        sum
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let ys = Op::apply(&x, 4);
    assert_eq!(ys.len(), 4);
    ys[3].sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}
