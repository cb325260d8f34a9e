// Formulas of two inputs.
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Op {
CASE
}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x, &x);
}

//= some of the inputs must have a gradient
    fn forward<L: Lane>(#[stop_gradient] x: Real<L>, #[stop_gradient] w: Real<L>) -> Real<L> {
        x * w
    }

//= a tensor of numbers is no mask
    fn forward<L: Lane>(x: Real<L>, #[stop_gradient] keep: Mask<L>) -> Real<L> {
        keep.select(x, 0.0)
    }

//= an input needs a name
    fn forward<L: Lane>(_: Real<L>, x: Real<L>) -> Real<L> {
        x
    }

//= an input cannot be called as the output or its gradient
    fn forward<L: Lane>(y: Real<L>, dy1: Real<L>) -> Real<L> {
        y * dy1
    }

//= backward returns a gradient for each input
    fn forward<L: Lane>(x: Real<L>, slope: Real<L>) -> Real<L> {
        x * slope
    }

    fn backward<L: Lane>(slope: Real<L>, dy: Real<L>) -> Real<L> {
        dy * slope
    }

//= a slip in a name of backward: the nearest right one is offered
    fn forward<L: Lane>(x: Real<L>, slope: Real<L>) -> Real<L> {
        x * slope
    }

    fn backward<L: Lane>(slop: Real<L>, x: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (dy * slop, dy * x)
    }

//= a name of backward that nothing is near
    fn forward<L: Lane>(x: Real<L>, slope: Real<L>) -> Real<L> {
        x * slope
    }

    fn backward<L: Lane>(gradient: Real<L>, x: Real<L>, dy: Real<L>) -> (Real<L>, Real<L>) {
        (dy * gradient, dy * x)
    }
