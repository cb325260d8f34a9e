// numbers, strings, slices, functions and closures
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        name: &str,
        sizes: &[usize],
        f: impl Fn(f64) -> f64,
        g: fn(&Tensor<f64>) -> Tensor<f64>,
        h: &dyn Fn(f64) -> f64,
        out: &mut Vec<String>,
    ) -> Tensor<f64> {
        out.push(format!("{name} {sizes:?}"));
        g(x) * f(h(2.0))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let mut out = Vec::new();
    let k = 3.0;
    let y = Op::apply(&x, "n", &[1, 2], |v| v * k, Tensor::square, &|v| v + k, &mut out);
    assert_eq!((y.to_vec(), out.as_slice()), (vec![135.0], &["n [1, 2]".to_owned()][..]));
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}
