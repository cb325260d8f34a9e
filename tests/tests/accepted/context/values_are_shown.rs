// `Grads` and the answer of `needs_input_grad` in debug output
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl Shown {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, ws: &[Tensor<f64>]) -> Tensor<f64> {
        let shown = format!("{:?}", ctx.needs_input_grad());
        assert!(shown.ends_with("{ x: true, ws: [false] }"), "{shown}");
        x * &ws[0]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let grads = Grads { x: dy.clone(), ws: vec![None::<Tensor<f64>>] };
        assert!(format!("{grads:?}").starts_with("Grads { x: Tensor"), "{grads:?}");
        grads
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    Shown::apply(&x, &[Tensor::from(vec![2.0])]).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0]);
}
