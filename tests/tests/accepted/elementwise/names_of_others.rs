// names of numbers and masks that the body gives to plain values, in every kind of pattern
use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Shadowed {
    fn forward(x: Real, w: Real, #[stop_gradient] keep: Mask, k: f64) -> Real {
        let product = keep.select(x * w, x);
        let mut factor = 0.0;
        for x in [k, 2.0 * k] {
            if x > 3.0 && k < 4.0 {
                factor += x;
            }
        }
        factor += match k {
            w if w > 100.0 => w,
            _ => 1.0,
        };
        let above = |x: f64| x > 0.0 && k < 100.0;
        fn is_large(x: f64) -> bool {
            x > 1000.0
        }
        let (x, keep) = (k, above(k) && !is_large(k));
        if keep && x >= k { product * factor } else { product }
    }
}

compiles_and_runs!(|[x, w]| Shadowed::apply(x, w, &Tensor::from([true]), 2.0), [3.0, 5.0] => [25.0, 15.0]);
