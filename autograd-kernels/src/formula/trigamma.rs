//! The derivative of digamma, as a formula: its derivatives of any order follow from it.

use std::f64::consts::PI;

use super::lane::Lane;
use super::real::Real;

/// The number of steps of the recurrence, after which the asymptotic series is accurate.
const SHIFT: i32 = 10;

/// Bernoulli's numbers B₂, B₄, ..
const BERNOULLI: [f64; 9] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
];

impl<L: Lane> Real<L> {
    /// The derivative of digamma, by reflection below 0; ∞ at its poles.
    #[doc(hidden)]
    #[inline(always)]
    pub fn trigamma(self) -> Self {
        let below = self.lt(0.0);
        let z = below.select(1.0 - self, self);
        let r = (z + SHIFT).recip();
        let w = r * r;
        let series = BERNOULLI.iter().rev().fold(Self::from(0.0), |sum, &b| sum.mul_add(w, b));
        let far = (series * w).mul_add(r, w * 0.5) + r;
        let y = (0..SHIFT).rev().fold(far, |sum, k| {
            let r = (z + k).recip();
            r.mul_add(r, sum)
        });
        let cosecant = PI / ((self - self.round()) * PI).sin();
        below.select(cosecant * cosecant - y, y)
    }
}
