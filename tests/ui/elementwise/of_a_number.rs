// Formulas with a number.
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
CASE
}

fn main() {}

//= a comparison of two numbers is no condition
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        if x > w { x } else { w }
    }

//= the fields of `Grads` are the differentiable inputs, each once
    fn forward<L: Lane>(x: Real<L>, weight: Real<L>, a: f64, #[stop_gradient] s: Real<L>) -> Real<L> {
        x * weight * a * s
    }

    fn backward<L: Lane>(x: Real<L>, weight: Real<L>, dy: Real<L>) -> Grads {
        let _ = Grads { x: dy * weight, weigth: dy * x };
        Grads { x: dy * weight, x: dy, weight: dy * x, a: dy, s: dy }
    }

//= a gradient is missing
    fn forward<L: Lane>(x: Real<L>, w: Real<L>) -> Real<L> {
        x * w
    }

    fn backward<L: Lane>(w: Real<L>, dy: Real<L>) -> Grads {
        Grads { x: dy * w }
    }

//= an elementwise op without forward
    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        dy * x
    }

//= an `f64` is one number for all elements
    fn forward(x: f64) -> Real {
        x.into()
    }

//= a slip of the type of a formula's only input
    fn forward<L: Lane>(x: Reel<L>) -> Real<L> {
        x * 2.0
    }

//= nor a tuple of numbers
    fn forward<L: Lane>((x, y): (Real<L>, Real<L>)) -> Real<L> {
        x + y
    }
