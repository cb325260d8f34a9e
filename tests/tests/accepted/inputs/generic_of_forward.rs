// parameters of `forward` itself
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl Op {
    fn forward<'a, I: IntoIterator<Item = f64>, L: ?Sized>(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        items: I,
        label: &'a L,
    ) -> (Tensor<f64>, &'a L) {
        (x * items.into_iter().sum::<f64>(), label)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 6.0
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    let (y, label) = Op::apply(&x, [1.0, 2.0, 3.0], "label");
    assert_eq!(label, "label");
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);
    let (y, _) = Op::with().label("other").items(vec![1.0]).x(&x).apply();
    assert_eq!(y.to_vec(), [3.0]);
}
