// defaults left out and given
use autograd_core::prelude::*;
use support::leaf;

#[py_layer]
impl Op {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[default(2.0)] by: f64,
        #[default(Tensor::square)] f: fn(&Tensor<f64>) -> Tensor<f64>,
        #[default(Self::NAME)] name: &str,
    ) -> Tensor<f64> {
        f(x) * by * name.len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    const NAME: &'static str = "n";
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    assert_eq!(Op::with().x(&x).apply().to_vec(), [18.0]);
    assert_eq!(Op::with().by(1.0).f(Tensor::abs).x(&x).apply().to_vec(), [3.0]);
    assert_eq!(Op::with().name("two").x(&x).try_apply().unwrap().to_vec(), [54.0]);
    assert_eq!(Op::apply(&x, 1.0, Tensor::abs, "n").to_vec(), [3.0]);
}
