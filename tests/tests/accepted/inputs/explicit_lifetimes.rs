// a lifetime written out, and `Foo<'_>`
use autograd_core::prelude::*;
use support::leaf;

struct Names<'a>(&'a str);

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        names: Names<'_>,
        more: &Names<'_>,
    ) -> Tensor<f64> {
        x * (names.0.len() + more.0.len()) as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let text = String::from("abc");
    let y = Op::with().more(&Names("d")).names(Names(&text)).x(&x).apply();
    assert_eq!(y.to_vec(), [12.0]);
}
