// Blocks that are no formula.
use autograd_core::prelude::*;

CASE

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}

//= an elementwise op has no element type of its own
#[py_layer(elementwise)]
impl<T: Float> Op<T> {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x
    }
}

//= a formula without `elementwise`
#[py_layer]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
        2.0 * x * dy
    }
}

//= the output is not kept where it is reduced
#[py_layer(elementwise, reduce = sum)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

    fn backward<L: Lane>(x: Real<L>, y: Real<L>, dy: Real<L>) -> Real<L> {
        2.0 * dy * y / x
    }
}

//= a backward that is meant to differ is to be compared with the derivative
#[py_layer(elementwise, surrogate, verify)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x.round()
    }

    fn backward<L: Lane>(dy: Real<L>) -> Real<L> {
        dy
    }
}
