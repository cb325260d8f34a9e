// parameters and ops with the names of what is generated
#![deny(warnings)]
use autograd_core::prelude::*;

#[py_layer]
impl<Argument0: Float> Generic<Argument0> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<Argument0>) -> Tensor<Argument0> { x.clone() }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<Argument0>) -> Grads { Grads { x: dy.clone() } }
}

#[py_layer(elementwise)]
impl T {
    fn forward(x: Real) -> Real { x * 2.0 }
    fn backward(dy: Real) -> Real { dy * 2.0 }
}

#[py_layer(elementwise)]
impl L {
    fn forward(x: Real) -> Real { x * 2.0 }
    fn backward(dy: Real) -> Real { dy * 2.0 }
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (Generic::apply(&x), Generic::with().x(&x).apply(), T::apply(&x), L::apply(&x));
}
