// integer and bool inputs, alone, optional and in lists
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[stop_gradient] at: &Tensor<i64>,
        #[stop_gradient] mask: Option<&Tensor<bool>>,
        #[stop_gradient] many: &[&Tensor<u8>],
    ) -> Tensor<f64> {
        x * (at.len() + many.len() + usize::from(mask.is_some())) as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let at = Tensor::<i64>::from(vec![1, 2]);
    let y = Op::apply(&x, &at, None, &[]);
    assert_eq!(y.to_vec(), [6.0]);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
