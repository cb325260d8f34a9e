//! Samples from distributions that tensors describe.

use super::{Float, expect, pairs};
use crate::array::shape::{element_count, sorted};
use crate::error::{Error, RECEIVER, Result};
use crate::graph::Tensor;

/// # Samples
///
/// Numbers are drawn from the process-wide generator that [`seed`](crate::seed) sets, or from the one whose
/// [`run`](crate::Generator::run) is active.
impl<T: Float> Tensor<T> {
    pairs! {
        /// Draws Bernoulli samples, without gradient: 1 with the probability in the element, else 0.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let p = Tensor::from([0.0, 1.0, 0.5]);
        /// assert_eq!(p.bernoulli().to_vec()[..2], [0.0, 1.0]);
        /// ```
        pub fn bernoulli(&self) -> Tensor<T>,
            Panics if "an element lies outside `0..=1` or is NaN" {
            let p = self.detach();
            p.is_read("bernoulli");
            let outside = p.to_vec().into_iter().map(T::into_f64).find(|p| !(0.0..=1.0).contains(p));
            if let Some(found) = outside {
                let expected = "of probabilities, 0 to 1";
                expect(Err(Error::value("bernoulli", RECEIVER, expected, found)))
            }
            Tensor::rand_like(&p).less(&p).cast()
        }

        /// Draws `count` positions along the last axis, each with a probability proportional to the element
        /// there: `[.., count]` from weights `[.., n]`. Without `replacement`, none of a row is drawn twice
        /// (Efraimidis and Spirakis 2006).
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let weights = Tensor::from([0.0, 3.0, 0.0]);
        /// assert_eq!(weights.multinomial(4, true).to_vec(), [1, 1, 1, 1]);
        /// ```
        #[doc(alias = "categorical")]
        pub fn multinomial, try_multinomial(&self, count: usize, replacement: bool) -> Tensor<i64>,
            Shape | Value | TooLarge if "there is no axis, an element is negative, infinite or NaN, all of a row are \
                0, or `count` positions without replacement are more than a row's elements other than 0",
            "Tensor::from([0.0, 3.0]).try_multinomial(2, false)" => Value {
            self.is_read("multinomial");
            drawn(self, count, replacement)
        }
    }
}

fn drawn<T: Float>(x: &Tensor<T>, count: usize, replacement: bool) -> Result<Tensor<i64>> {
    let op = "multinomial";
    let mut shape = x.shape_owned();
    let Some(n) = shape.pop() else {
        return Err(Error::shape(op, RECEIVER, "of one axis or more", &[]));
    };
    shape.push(count);
    let total = element_count(op, &shape)?;
    let weights: Vec<f64> = x.to_vec().into_iter().map(T::into_f64).collect();
    if let Some(found) = weights.iter().find(|x| !(0.0..f64::INFINITY).contains(*x)) {
        return Err(Error::value(op, RECEIVER, "of finite weights of 0 or more", found));
    }
    if n == 0 && total > 0 {
        return Err(Error::value(op, RECEIVER, "of one weight or more in each row", "none"));
    }
    let least = if replacement { count.min(1) } else { count };
    for row in weights.chunks(n.max(1)) {
        let possible = row.iter().filter(|&&x| x > 0.0).count();
        if possible < least {
            let expected = format!("of {least} or more weights above 0 in each row");
            return Err(Error::value(op, RECEIVER, expected, possible));
        }
    }
    let each = if replacement { count } else { n };
    let draws =
        Tensor::<f64>::rand(if replacement { shape.clone() } else { x.shape_owned() }).to_vec();
    let mut drawn = Vec::with_capacity(total);
    for (row, draws) in weights.chunks(n.max(1)).zip(draws.chunks(each.max(1))) {
        match replacement {
            true => independent(row, draws, &mut drawn),
            false => drawn.extend(&arrivals(row, draws)[..count]),
        }
    }
    Tensor::from_vec(shape, drawn)
}

/// Draws a position among `weights`, which are not all 0, for each number in [0, 1).
fn independent(weights: &[f64], draws: &[f64], drawn: &mut Vec<i64>) {
    // Scaled, so that the sum of large weights is finite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let mut total = 0.0;
    let sums: Vec<f64> =
        weights.iter().map(|weight| (total += weight / largest, total).1).collect();
    // If rounding puts a draw beyond the end, the last position that can be drawn.
    let last = sums.partition_point(|&sum| sum < total);
    drawn.extend(
        draws.iter().map(|draw| sums.partition_point(|&sum| sum <= draw * total).min(last) as i64),
    );
}

/// Returns the positions of weights above 0 in the order of draws without replacement, which is that of
/// exponential arrival times with the weights as rates (Efraimidis and Spirakis 2006). The times are compared
/// by their logarithms, which are finite for all weights.
fn arrivals(weights: &[f64], draws: &[f64]) -> Vec<i64> {
    let time = |at: usize| (-(-draws[at]).ln_1p()).ln() - weights[at].ln();
    let order = sorted(weights.len(), &|a, b| time(a).total_cmp(&time(b)));
    order.into_iter().filter(|&at| weights[at] > 0.0).map(|at| at as i64).collect()
}
