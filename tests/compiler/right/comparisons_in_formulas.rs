// Comparisons of plain numbers in a formula, beside masks, are left alone.
#![deny(warnings)]
use autograd_core::prelude::*;
#[py_layer(elementwise)]
impl Bent {
    fn forward(x: Real, low: f64, high: f64, rounds: usize, #[stop_gradient] keep: Mask) -> Real {
        let inside = x.gt(low) & x.lt(high) | !keep;
        if low < high && 0.0 <= low || high.gt(&2.0) {
            return inside.select(x, 0.0);
        }
        let mut y = x;
        let mut left = rounds;
        while left.gt(&0) && 1 < left {
            left -= 1;
            y = y * 0.5;
        }
        let bounds = [low, high].map(|x| if 0.0 < x { x } else { -x });
        let text = format!("{low} {high:?}");
        inside.select(y * bounds[0], bounds[1] + text.len() as f64)
    }
}
fn main() {
    let (x, keep) = (Tensor::from([1.0]), Tensor::from([true]));
    let _ = Bent::apply(&x, 0.0, 1.0, 2, &keep);
}
