// forward and backward that return a Result, by every form of gradients.
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Checked {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        fail: bool,
    ) -> Result<(Tensor<f64>, f64), String> {
        if fail {
            return Err("refused".to_owned());
        }
        Ok((x * 2.0, 1.0))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: Option<&Tensor<f64>>) -> Result<Grads, String> {
        let Some(dy) = dy else { return Ok(Grads { x: None }) };
        if dy.to_vec()[0] > 5.0 {
            return Err(format!("too large: {}", dy.to_vec()[0]));
        }
        Ok(Grads { x: Some(dy * 2.0) })
    }
}

type Pair = (Tensor<f64>, Option<Tensor<f64>>);

#[py_layer]
impl Aliased {
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a + b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> autograd_core::Result<Pair> {
        Ok((dy.clone(), Some(dy.clone())))
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    assert_eq!(Checked::apply(&x, true).unwrap_err(), "refused");
    let (y, one) = Checked::try_apply(&x, false).unwrap().unwrap();
    assert_eq!(one, 1.0);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
    let (y, _) = Checked::with().x(&x).fail(false).apply().unwrap();
    let error = (y.sum() * 10.0).backward().unwrap_err();
    assert!(error.to_string().contains("backward failed: too large: 10"), "{error}");
    assert!(error.to_string().starts_with("Checked (called at "), "{error}");
    Aliased::apply(&x, &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}
