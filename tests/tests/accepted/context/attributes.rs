// attributes of every kind
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[derive(Clone, Copy)]
enum Kind {
    Half,
}

/// A value borrowed for the program's lifetime, and one that a function takes.
type Named = (&'static str, fn(&str) -> usize);

#[py_layer]
impl Op {
    type Attrs = (Kind, fn(f64) -> f64, Box<dyn Fn(f64) -> f64 + Send + Sync>, Named);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: fn(f64) -> f64) -> Tensor<f64> {
        ctx.set_attrs((Kind::Half, f, Box::new(|v| v * 4.0), ("four", str::len)));
        x * 0.5
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (Kind::Half, f, g, (name, len)) = ctx.attrs();
        dy * f(g(0.25)) * (len(name) as f64 / 4.0)
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::apply(&x, f64::sqrt).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}
