//! Sums of floating-point numbers that do not depend on the order, nor on how the terms are grouped.
//!
//! A sum has two integers for each position. Their units are 2^(40 t) and 2^(40 (t - 1)), where `t`, the top, is a
//! whole number that all positions of a sum share: the least one for which the largest element of all terms is below
//! 2^39 upper units. A term is rounded once, to a multiple of the lower unit, and then added as integers. The
//! units lie on one grid for all numbers, so a sum whose top is raised later, because a larger element comes, is the
//! sum that would have been computed with that top from the start: what falls off the lower end would have been
//! rounded away there.
//!
//! The largest element `M` is at least 2^(40 t - 1), so rounding a term changes it by at most 2^-40 M. With integer
//! weights that add up to at most [`MAX_WEIGHT`], an integer stays below 2^39 * 2^21 = 2^60.

/// The number of bits between the two units.
const WIDTH: i32 = 40;

/// The greatest sum of weights.
pub(crate) const MAX_WEIGHT: u64 = (1 << 21) - 1;

/// Adding and subtracting it rounds a number of less than 2^51 to the nearest integer, ties to even; the bits of the
/// sum are those of this number plus that integer.
const ROUND: f64 = 1.5 * (1_u64 << 52) as f64;

/// The top of a sum of zeros, below that of every number.
pub(crate) const NO_TOP: i64 = -1000;

/// The sums of several terms, each a list of numbers.
#[derive(Clone, Debug)]
pub(crate) struct ExactSum {
    top: i64,
    /// The upper integers, then the lower ones.
    integers: Vec<i64>,
    /// How many terms are NaN, infinity and -infinity, in 21 bits each, if any is.
    special: Option<Vec<i64>>,
}

const NAN: i64 = 1 << 42;
const INFINITY: i64 = 1 << 21;
const MINUS_INFINITY: i64 = 1;

impl ExactSum {
    pub(crate) fn zeros(len: usize) -> Self {
        Self { top: NO_TOP, integers: vec![0; 2 * len], special: None }
    }

    pub(crate) fn clear(&mut self) {
        self.top = NO_TOP;
        self.integers.fill(0);
        self.special = None;
    }

    pub(crate) fn top(&self) -> i64 {
        self.top
    }

    pub(crate) fn has_special(&self) -> bool {
        self.special.is_some()
    }

    /// The integers, to be added to those of another sum of the same top.
    pub(crate) fn integers_mut(&mut self) -> &mut [i64] {
        &mut self.integers
    }

    /// The counts of special numbers, to be added to those of another sum.
    pub(crate) fn special_mut(&mut self) -> &mut [i64] {
        let len = self.integers.len() / 2;
        self.special.get_or_insert_with(|| vec![0; len])
    }

    /// Raises the top: what is below the new lower unit is dropped.
    pub(crate) fn raise(&mut self, top: i64) {
        let steps = top - self.top;
        if steps > 0 {
            let (upper, lower) = halves(&mut self.integers);
            match steps {
                1 => lower.copy_from_slice(upper),
                _ => lower.fill(0),
            }
            upper.fill(0);
            self.top = top;
        }
    }

    /// Adds `weight` times the numbers, at the positions from `start` on.
    pub(crate) fn add<T: Copy + Into<f64>>(&mut self, start: usize, numbers: &[T], weight: u32) {
        self.raise(top_of(numbers));
        if self.top == NO_TOP && numbers.iter().all(|&x| x.into() == 0.0) {
            return;
        }
        let (up, down) = powers(-WIDTH * self.top as i32);
        let (step, weight) = ((1_u64 << WIDTH) as f64, i64::from(weight));
        let (upper, lower) = halves(&mut self.integers);
        let places = upper[start..].iter_mut().zip(&mut lower[start..]).zip(numbers);
        let mut special = false;
        for ((upper, lower), &x) in places {
            let x: f64 = x.into();
            special |= !x.is_finite();
            let x = if x.is_finite() { x * up * down } else { 0.0 };
            let rounded = x + ROUND;
            *upper += weight * integer(rounded);
            *lower += weight * integer((x - (rounded - ROUND)) * step + ROUND);
        }
        if special {
            for (count, &x) in self.special_mut()[start..].iter_mut().zip(numbers) {
                *count += count_of(x.into());
            }
        }
    }

    /// The sums divided by the sum of the weights: rounded to `f64` once, or twice with more than 2^13 weights, and
    /// once more by the division.
    pub(crate) fn means(
        &self,
        start: usize,
        len: usize,
        weights: u64,
    ) -> impl Iterator<Item = f64> {
        let (upper, lower) = self.integers.split_at(self.integers.len() / 2);
        let (up, down) = powers(WIDTH * (self.top as i32 - 1));
        let (range, weights) = (start..start + len, weights as f64);
        let places = range.clone().zip(upper[range.clone()].iter().zip(&lower[range]));
        places.map(move |(at, (&upper, &lower))| {
            match self.special.as_ref().map_or(0, |counts| counts[at]) {
                0 => {
                    let (upper, lower) = (upper + (lower >> WIDTH), lower & ((1 << WIDTH) - 1));
                    let sum = upper as f64 * (1_u64 << WIDTH) as f64 + lower as f64;
                    sum / weights * up * down
                }
                counts => special_of(counts),
            }
        })
    }
}

/// The upper integers and the lower ones.
fn halves(integers: &mut [i64]) -> (&mut [i64], &mut [i64]) {
    let len = integers.len() / 2;
    integers.split_at_mut(len)
}

/// The integer that was rounded to by adding [`ROUND`].
fn integer(sum: f64) -> i64 {
    (sum.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64)
}

/// The top for these numbers, without special ones.
fn top_of<T: Copy + Into<f64>>(numbers: &[T]) -> i64 {
    let bits = |x: f64| x.abs().to_bits();
    let mut most = numbers.iter().fold(0, |most, &x| most.max(bits(x.into())));
    if most >= f64::INFINITY.to_bits() {
        let finite = numbers.iter().map(|&x| x.into()).filter(|x| x.is_finite());
        most = finite.fold(0, |most, x| most.max(bits(x)));
    }
    if most == 0 {
        return NO_TOP;
    }
    // The largest element is below 2^(exponent + 1).
    let exponent = match (most >> 52) as i64 {
        0 => 63 - i64::from(most.leading_zeros()) - 1074,
        biased => biased - 1023,
    };
    (exponent + 1).div_euclid(i64::from(WIDTH))
}

/// Two factors whose product is 2^exponent, which may be outside the range of `f64`.
fn powers(exponent: i32) -> (f64, f64) {
    let half = exponent / 2;
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    match exponent.abs() < 2000 {
        true => (power(half), power(exponent - half)),
        // The top of zeros.
        false => (0.0, 0.0),
    }
}

fn count_of(x: f64) -> i64 {
    match x {
        x if x.is_nan() => NAN,
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => MINUS_INFINITY,
        _ => 0,
    }
}

fn special_of(counts: i64) -> f64 {
    let has = |unit: i64| counts / unit % (1 << 21) != 0;
    match (has(NAN), has(INFINITY), has(MINUS_INFINITY)) {
        (false, true, false) => f64::INFINITY,
        (false, false, true) => f64::NEG_INFINITY,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Terms with their weights.
    type Terms = Vec<(Vec<f64>, u32)>;

    fn sum_of(terms: &[(Vec<f64>, u32)], len: usize) -> ExactSum {
        let mut sum = ExactSum::zeros(len);
        terms.iter().for_each(|(x, weight)| sum.add(0, x, *weight));
        sum
    }

    /// As ranks do it: each sums its own terms, the tops are raised to the highest, the integers are added.
    fn combined(ranks: Vec<ExactSum>, len: usize) -> ExactSum {
        let top = ranks.iter().map(ExactSum::top).max().unwrap();
        let special = ranks.iter().any(ExactSum::has_special);
        let mut total = ExactSum::zeros(len);
        total.raise(top);
        for mut rank in ranks {
            rank.raise(top);
            let both = total.integers.iter_mut().zip(&rank.integers);
            both.for_each(|(total, x)| *total += x);
            if special {
                let counts = rank.special_mut().to_vec();
                let both = total.special_mut().iter_mut().zip(counts);
                both.for_each(|(total, x)| *total += x);
            }
        }
        total
    }

    fn bits(sum: &ExactSum, weights: u64) -> Vec<u64> {
        let len = sum.integers.len() / 2;
        let plain = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
        sum.means(0, len, weights).map(plain).collect()
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => -1.0..1.0,
            2 => (-1.0..1.0, -300..300).prop_map(|(x, e): (f64, i32)| x * 2_f64.powi(e)),
            1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
            1 => prop::sample::select(vec![
                0.0, -0.0, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN,
                2_f64.powi(39), 2_f64.powi(39) - 0.25, 2_f64.powi(-41), 0.5, 1.0,
            ]),
        ]
    }

    fn terms(number: impl Strategy<Value = f64>) -> impl Strategy<Value = Terms> {
        let term = (proptest::collection::vec(number, 3), 1_u32..50);
        proptest::collection::vec(term, 1..12)
    }

    fn with_special() -> impl Strategy<Value = f64> {
        let special = prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        prop_oneof![5 => number(), 1 => special]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn neither_order_nor_grouping_matters(
            terms in terms(with_special()),
            owners in proptest::collection::vec(0_usize..4, 12),
            ranks in 1_usize..5,
        ) {
            let weights = terms.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let expected = bits(&sum_of(&terms, 3), weights);
            let mut reversed = terms.clone();
            reversed.reverse();
            prop_assert_eq!(bits(&sum_of(&reversed, 3), weights), expected.clone());
            let of = |rank: usize| {
                let own = terms.iter().zip(&owners).filter(|(_, owner)| **owner % ranks == rank);
                sum_of(&own.map(|(term, _)| term.clone()).collect::<Terms>(), 3)
            };
            let total = combined((0..ranks).map(of).collect(), 3);
            prop_assert_eq!(bits(&total, weights), expected);
        }

        /// The bound of the documentation: 2^-40 of the largest element, and the roundings of the result.
        #[test]
        fn the_error_is_bounded(terms in terms(number())) {
            let small = terms.iter().all(|(x, _)| x.iter().all(|x| x.abs() < 1e300));
            prop_assume!(small);
            let weights: u64 = terms.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let most = terms.iter().flat_map(|(x, _)| x).fold(0.0_f64, |most, x| most.max(x.abs()));
            let sum = sum_of(&terms, 3);
            for (at, found) in sum.means(0, 3, weights).enumerate() {
                // Kept exact by a second number for what the sum rounds away.
                let (mut high, mut low) = (0.0_f64, 0.0_f64);
                for (x, weight) in &terms {
                    let x = x[at] * f64::from(*weight);
                    let next = high + x;
                    low += if high.abs() >= x.abs() { high - next + x } else { x - next + high };
                    high = next;
                }
                let expected = (high + low) / weights as f64;
                let bound = most * 2_f64.powi(-40) * 1.01 + expected.abs() * 1e-15 + 1e-323;
                prop_assert!((found - expected).abs() <= bound, "{} {} {}", found, expected, most);
            }
        }
    }

    #[test]
    fn one_term_of_single_precision_keeps_its_bits_near_the_largest() {
        let x: Vec<f32> = vec![1.0, 0.1, -3.0e-5, 1.0 / 3.0, -0.7];
        let mut sum = ExactSum::zeros(x.len());
        sum.add(0, &x, 32);
        let found: Vec<f32> = sum.means(0, x.len(), 32).map(|x| x as f32).collect();
        assert_eq!(found, x);
    }

    #[test]
    fn zeros_and_subnormals() {
        let mut sum = ExactSum::zeros(2);
        sum.add(0, &[0.0, -0.0], 7);
        assert_eq!((sum.top(), bits(&sum, 7)), (NO_TOP, vec![0, 0]));
        sum.add(0, &[5e-324, -1e-310], 7);
        assert_eq!(bits(&sum, 7), [5e-324_f64.to_bits(), (-1e-310_f64).to_bits()]);
        sum.add(0, &[f64::MAX, 0.0], 7);
        assert_eq!(sum.means(0, 2, 14).collect::<Vec<_>>()[0], f64::MAX / 2.0);
        sum.clear();
        assert_eq!(bits(&sum, 1), [0, 0]);
    }

    #[test]
    fn the_largest_weight_fits() {
        let mut sum = ExactSum::zeros(2);
        // The largest integers of either unit.
        let x = 2_f64.powi(39) - 0.5;
        (0..MAX_WEIGHT >> 10).for_each(|_| sum.add(0, &[x, -x], 1 << 10));
        assert_eq!(sum.means(0, 2, (MAX_WEIGHT >> 10) << 10).collect::<Vec<_>>(), [x, -x]);
        assert!(sum.integers.iter().all(|x| x.abs() < 1 << 61));
    }

    #[test]
    fn special_numbers_are_those_of_a_plain_sum() {
        const INF: f64 = f64::INFINITY;
        let mut sum = ExactSum::zeros(5);
        sum.add(0, &[1.0, INF, -INF, INF, f64::NAN], 2);
        sum.add(0, &[1.0, 1.0, 1.0, -INF, 1.0], 3);
        let found: Vec<f64> = sum.means(0, 5, 5).collect();
        assert_eq!(found[..3], [1.0, INF, -INF]);
        assert!(found[3].is_nan() && found[4].is_nan());
    }
}
