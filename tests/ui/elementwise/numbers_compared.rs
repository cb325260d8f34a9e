// numbers of a formula are compared by methods, on either side and joined
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Positive {
    fn forward(x: Real) -> Real {
        if 0.0 < x { x } else { -x }
    }
}

#[py_layer(elementwise)]
impl Above {
    fn forward(x: Real, low: f64) -> Real {
        let above = low <= x;
        above.select(x, 0.0)
    }

    fn backward(x: Real, dy: Real) -> Real {
        if 1 == x { dy } else { dy * 2.0 }
    }
}

#[py_layer(elementwise)]
impl Between {
    fn forward(x: Real, w: Real, low: f64) -> Real {
        let inside = x > low && x < 1.0;
        let outside = (x < w * 2.0) || !inside;
        if low > 0.0 && x >= 1.0 { inside.select(x, w) } else { outside.select(x, w) }
    }

    fn backward(x: Real, w: Real, dy: Real) -> Grads {
        let positive = (x > 0.0) & w.gt(0.0);
        Grads { x: positive.select(dy, 0.0), w: if x != w { dy } else { -dy } }
    }
}

fn main() {}
