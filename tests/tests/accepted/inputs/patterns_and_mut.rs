// patterns and `mut` in plain parameters, `mut` on a tensor
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward<'a>(
        _ctx: &mut ForwardContext<Self>,
        mut x: &'a Tensor<f64>,
        other: &'a Tensor<f64>,
        mut n: usize,
        (a, b): (f64, f64),
        [c, _]: [f64; 2],
    ) -> Tensor<f64> {
        n += 1;
        if n > 1 {
            x = other;
        }
        x * (a + b + c)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 0.0)
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let y = Op::apply(&x, &x, 1, (1.0, 2.0), [3.0, 4.0]);
    assert_eq!(y.to_vec(), [18.0]);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
