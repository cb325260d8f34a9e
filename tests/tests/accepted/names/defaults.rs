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

#[py_layer(check(x = [2], bias = [2]))]
impl Affine {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        #[default(None)] bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        bias.map_or_else(|| x * 2.0, |bias| x * 2.0 + bias)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, bias: Some(dy.clone()) }
    }
}

#[test]
fn an_optional_tensor_is_left_out_or_given() {
    let (x, bias) = (leaf(&[3.0]), leaf(&[0.5]));
    assert_eq!(Affine::with().x(&x).apply().to_vec(), [6.0]);
    let y = Affine::with().bias(Some(&bias)).x(&x).apply();
    assert_eq!(y.to_vec(), [6.5]);
    y.backward().unwrap();
    assert_eq!((x.grad().unwrap().to_vec(), bias.grad().unwrap().to_vec()), (vec![2.0], vec![1.0]));
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    assert_eq!(Op::with().x(&x).apply().to_vec(), [18.0]);
    assert_eq!(Op::with().by(1.0).f(Tensor::abs).x(&x).apply().to_vec(), [3.0]);
    assert_eq!(Op::with().name("two").x(&x).try_apply().unwrap().to_vec(), [54.0]);
    assert_eq!(Op::apply(&x, 1.0, Tensor::abs, "n").to_vec(), [3.0]);
}
