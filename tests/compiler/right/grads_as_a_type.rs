// `Grads` is named as any type: in a `let`, a helper, a closure, an option and a result
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl<T: Float> Helper<T> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> { x.clone() }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Grads { Self::of(dy) }
    fn of(dy: &Tensor<T>) -> Grads { Grads { x: dy.clone() } }
}

#[py_layer]
impl Named {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> { x * 2.0 }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> autograd_core::Result<Grads> {
        let closure = |dy: &Tensor<f64>| -> Grads { Grads { x: dy.clone() } };
        let option: Option<Self::Grads> = Some(closure(dy));
        fn of(result: Result<Grads, u8>) -> Grads { result.unwrap() }
        let grads: Grads = of(Ok(closure(dy)));
        drop(grads);
        Ok(option.unwrap())
    }
}

#[py_layer(elementwise)]
impl Formula {
    fn forward(x: Real) -> Real { x * 2.0 }
    fn backward(dy: Real) -> Grads { let grads: Grads = Grads { x: dy * 2.0 }; grads }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (Helper::apply(&x), Named::apply(&x), Formula::apply(&x));
}
