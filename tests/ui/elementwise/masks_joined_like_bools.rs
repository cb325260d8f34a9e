// masks are joined by `&` and `|`
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Between {
    fn forward(x: Real, low: f64) -> Real {
        (x.gt(low) && x.lt(1.0)).select(x, 0.0)
    }
}

#[py_layer(elementwise)]
impl Outside {
    fn forward(x: Real, #[stop_gradient] keep: Mask) -> Real {
        let below = x.lt(-1.0);
        if below || !keep || x.gt(1.0) { x } else { -x }
    }

    fn backward(x: Real, keep: Mask, dy: Real) -> Real {
        (keep && x.gt(1.0)).select(dy, 0.0)
    }
}

scalar_op!(Clamped: y = (x.gt(0.0) && x.lt(1.0)).select(x, 0.0), dx = dy * x);

fn main() {}
