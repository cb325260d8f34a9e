// a formula cannot branch on a mask, also by `while`, `match` or a name
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Looping {
    fn forward(x: Real) -> Real {
        let mut x = x;
        while x.gt(1.0) {
            x = x / 2.0;
        }
        x
    }
}

#[py_layer(elementwise)]
impl Matching {
    fn forward(x: Real) -> Real {
        match x.gt(0.0) {
            true => x,
            false => -x,
        }
    }
}

#[py_layer(elementwise)]
impl Named {
    fn forward(x: Real, #[stop_gradient] keep: Mask) -> Real {
        let positive = x.gt(0.0);
        if positive {
            return x;
        }
        if !keep { x * 2.0 } else { -x }
    }
}

fn main() {}
