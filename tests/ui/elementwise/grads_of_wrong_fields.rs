// the fields of `Grads` are the differentiable inputs, each once
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, weight: Real<L>, a: f64, #[stop_gradient] s: Real<L>) -> Real<L> {
        x * weight * a * s
    }

    fn backward<L: Lane>(x: Real<L>, weight: Real<L>, dy: Real<L>) -> Grads {
        let _ = Grads { x: dy * weight, weigth: dy * x };
        Grads { x: dy * weight, x: dy, weight: dy * x, a: dy, s: dy }
    }
}

fn main() {}
