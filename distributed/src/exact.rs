//! Sums of floating-point numbers that do not depend on the order, nor on how the terms are grouped.
//!
//! All terms share a unit, a power of two that follows from the largest element of all terms. Each term is rounded
//! to a multiple of the unit, and sums of integers have no order.
//!
//! With elements below 2^e the unit is 2^(e - 47). The largest element `M` is at least 2^(e - 1), so rounding a term
//! changes it by at most 2^(e - 48), which is 2^-47 M or less. A term is weighted before it is rounded, by 1 or, that
//! of a smaller micro-batch, by less. [`MAX_TERMS`] integers of at most 2^47 add up to less than 2^63.

/// Terms have at most 2^BITS units.
const BITS: i32 = 47;

/// The greatest number of terms.
pub(crate) const MAX_TERMS: usize = (1 << 16) - 1;

/// The exponent of zeros, and of smaller elements than this: the inverse of the unit must be a number.
const MIN_EXPONENT: i64 = -940;

/// Adding and subtracting it rounds a number of less than 2^51 to the nearest integer, ties to even; the bits of the
/// sum are those of this number plus that integer.
const ROUND: f64 = 1.5 * (1_u64 << 52) as f64;

const NAN: i64 = 1 << 42;
const INFINITY: i64 = 1 << 21;
const MINUS_INFINITY: i64 = 1;

/// The size of the elements of a term. The larger of two sizes, in both fields, is that of both terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// The least exponent for which all finite elements are below 2^exponent.
    pub(crate) exponent: i64,
    /// 1 if there are NaN or infinities, else 0.
    pub(crate) special: i64,
}

impl Size {
    /// Below that of every term.
    pub(crate) const NONE: Self = Self { exponent: i64::MIN, special: 0 };

    pub(crate) fn of<T: Copy + Into<f64>>(term: &[T]) -> Self {
        // The upper half has the exponent.
        let upper = |&x: &T| ((x.into().to_bits() >> 32) & 0x7fff_ffff) as i32;
        const SPECIAL: i32 = 0x7ff0_0000;
        let most = term.iter().map(upper).fold(0, i32::max);
        let special = most >= SPECIAL;
        let most = match special {
            true => term.iter().map(upper).filter(|&x| x < SPECIAL).fold(0, i32::max),
            false => most,
        };
        let exponent = i64::from(most >> 20) - 1022;
        Self { exponent: exponent.max(MIN_EXPONENT), special: i64::from(special) }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        let exponent = self.exponent.max(other.exponent);
        Self { exponent, special: self.special.max(other.special) }
    }

    /// Adds a term, weighted by at most 1. Special numbers are left out.
    pub(crate) fn add<T: Copy + Into<f64>>(self, sums: &mut [i64], term: &[T], weight: f64) {
        let factor = weight * power(i64::from(BITS) - self.exponent);
        for (sum, &x) in sums.iter_mut().zip(term) {
            let x: f64 = x.into();
            let x = if x.abs() < f64::INFINITY { x * factor } else { 0.0 };
            *sum += ((x + ROUND).to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
        }
    }

    /// The sums divided by the sum of the weights.
    pub(crate) fn means(self, sums: &[i64], weights: f64) -> impl Iterator<Item = f64> {
        let factor = power(self.exponent - i64::from(BITS)) / weights;
        sums.iter().map(move |&sum| sum as f64 * factor)
    }
}

fn power(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Counts the special numbers of a term: of each kind in 21 bits.
pub(crate) fn count_special<T: Copy + Into<f64>>(counts: &mut [i64], term: &[T]) {
    for (count, &x) in counts.iter_mut().zip(term) {
        *count += match x.into() {
            x if x.is_nan() => NAN,
            f64::INFINITY => INFINITY,
            f64::NEG_INFINITY => MINUS_INFINITY,
            _ => 0,
        };
    }
}

/// What a plain sum of these special numbers is; `None` of none.
pub(crate) fn special_of(counts: i64) -> Option<f64> {
    let has = |unit: i64| counts / unit % (1 << 21) != 0;
    match (has(NAN), has(INFINITY), has(MINUS_INFINITY)) {
        (false, false, false) => None,
        (false, true, false) => Some(f64::INFINITY),
        (false, false, true) => Some(f64::NEG_INFINITY),
        _ => Some(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Terms of three elements with their weights, in parts of [`WHOLE`].
    type Terms<T> = Vec<([T; 3], u32)>;

    const WHOLE: u32 = 50;

    fn weight(items: u32) -> f64 {
        f64::from(items) / f64::from(WHOLE)
    }

    /// The means as ranks compute them, term `i` on the rank that `owners` says.
    fn means<T: Copy + Into<f64>>(terms: &Terms<T>, owners: &[usize]) -> [f64; 3] {
        let size = terms.iter().fold(Size::NONE, |size, (term, _)| size.max(Size::of(term)));
        let (mut total, mut special) = ([0; 3], [0; 3]);
        for rank in 0..4 {
            let mut sums = [0; 3];
            for ((term, items), _) in terms.iter().zip(owners).filter(|(_, owner)| **owner == rank)
            {
                size.add(&mut sums, term, weight(*items));
                count_special(&mut special, term);
            }
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        let weights = weight(terms.iter().map(|(_, items)| items).sum());
        let mut means = size.means(&total, weights);
        special.map(|counts| {
            let mean = means.next().unwrap_or(f64::NAN);
            special_of(counts).unwrap_or(mean)
        })
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => -1.0..1.0,
            2 => (-1.0..1.0, -300..300).prop_map(|(x, e): (f64, i32)| x * 2_f64.powi(e)),
            1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
            1 => prop::sample::select(vec![
                0.0, -0.0, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN,
                2_f64.powi(39), 2_f64.powi(39) - 0.25, 2_f64.powi(-47), 0.5, 1.0,
            ]),
        ]
    }

    fn single() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => -1.0_f32..1.0,
            2 => (-1.0_f32..1.0, -60..60).prop_map(|(x, e): (f32, i32)| x * 2_f32.powi(e)),
            1 => any::<f32>().prop_filter("finite", |x| x.is_finite()),
        ]
    }

    /// Whole micro-batches, and one that is smaller.
    fn terms<T: Copy + std::fmt::Debug>(
        number: impl Strategy<Value = T>,
    ) -> impl Strategy<Value = Terms<T>> {
        let terms = proptest::collection::vec(proptest::collection::vec(number, 3), 1..12);
        (terms, 1..WHOLE).prop_map(|(terms, last)| {
            let whole = terms.len() - 1;
            let items = |at| if at == whole { last } else { WHOLE };
            terms.iter().enumerate().map(|(at, x)| ([x[0], x[1], x[2]], items(at))).collect()
        })
    }

    fn with_special() -> impl Strategy<Value = f64> {
        let special = prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        prop_oneof![5 => number(), 1 => special]
    }

    const ONE_RANK: [usize; 12] = [0; 12];

    /// Checks the bound of the documentation, in units of the largest element, against sums of twice the precision.
    fn check_error<T: Copy + Into<f64>>(terms: &Terms<T>) -> Result<(), TestCaseError> {
        let elements = terms.iter().flat_map(|(term, _)| term);
        let most = elements.fold(0.0_f64, |most, &x| most.max(x.into().abs()));
        prop_assume!(most < 1e300 && (most == 0.0 || most > 1e-280));
        let weights = weight(terms.iter().map(|(_, items)| items).sum());
        for (at, found) in means(terms, &ONE_RANK).into_iter().enumerate() {
            let (mut high, mut low) = (0.0_f64, 0.0_f64);
            for (term, items) in terms {
                let x: f64 = term[at].into();
                let (items, product) = (f64::from(*items), x * f64::from(*items));
                let rest = x.mul_add(items, -product);
                let sum = high + product;
                let lost = match high.abs() >= product.abs() {
                    true => high - sum + product,
                    false => product - sum + high,
                };
                (high, low) = (sum, low + lost + rest);
            }
            let expected = (high + low) / f64::from(WHOLE) / weights;
            // In the mean, terms whose weights are at most 1.
            let rounded = terms.len() as f64 / weights * most * 2_f64.powi(-47);
            let bound = rounded + expected.abs() * 1e-15;
            prop_assert!((found - expected).abs() <= bound, "{found} {expected} {most}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn neither_order_nor_grouping_matters(
            terms in terms(with_special()),
            owners in proptest::collection::vec(0_usize..4, 12),
        ) {
            let bits = |x: [f64; 3]| x.map(|x| if x.is_nan() { 0 } else { x.to_bits() });
            let expected = bits(means(&terms, &ONE_RANK));
            prop_assert_eq!(bits(means(&terms, &owners)), expected);
            let reversed: Terms<f64> = terms.iter().rev().copied().collect();
            prop_assert_eq!(bits(means(&reversed, &owners)), expected);
        }

        #[test]
        fn the_error_is_bounded(doubles in terms(number()), singles in terms(single())) {
            check_error(&doubles)?;
            check_error(&singles)?;
        }

        /// An element of single precision keeps all its bits down to 2^-23 of the largest, in a whole micro-batch.
        #[test]
        fn one_term_keeps_its_bits(
            most in 0.5_f32..1.0,
            parts in [(1.0_f32..2.0, -23..0), (1.0_f32..2.0, -23..0)],
        ) {
            let [x, y] = parts.map(|(x, exponent)| x * 2_f32.powi(exponent) * most);
            let term = [most, x, -y];
            let found = means(&vec![(term, WHOLE)], &ONE_RANK);
            prop_assert_eq!(found.map(|x| x as f32), term);
        }
    }

    #[test]
    fn zeros_and_the_largest() {
        assert_eq!(means(&vec![([0.0, -0.0, 0.0], WHOLE)], &ONE_RANK), [0.0; 3]);
        let most = [f32::MAX, f32::MIN, f32::MAX];
        assert_eq!(means(&vec![(most, WHOLE); 12], &ONE_RANK), most.map(f64::from));
        // What is lost below the least unit.
        assert_eq!(means(&vec![([5e-324, 1e-310, 0.0], WHOLE)], &ONE_RANK), [0.0; 3]);
        assert_eq!(
            means(&vec![([5e-324, 2_f64.powi(-980), 0.0], WHOLE)], &ONE_RANK)[1],
            2_f64.powi(-980)
        );
    }

    #[test]
    fn the_most_terms_fit() {
        let x = [1.0 - 2_f64.powi(-53), -1.0 + 2_f64.powi(-53), 0.5];
        let (size, mut sums) = (Size::of(&x), [0; 3]);
        (0..MAX_TERMS).for_each(|_| size.add(&mut sums, &x, 1.0));
        let found: Vec<f64> = size.means(&sums, MAX_TERMS as f64).collect();
        assert_eq!(found, [1.0, -1.0, 0.5]);
    }

    #[test]
    fn special_numbers_are_those_of_a_plain_sum() {
        const INF: f64 = f64::INFINITY;
        let terms: Terms<f64> = vec![([1.0, INF, INF], WHOLE), ([f64::NAN, 1.0, -INF], 7)];
        let found = means(&terms, &ONE_RANK);
        assert!(found[0].is_nan() && found[1] == INF && found[2].is_nan());
        assert_eq!(means(&vec![([-INF, 3.0, 0.0], WHOLE)], &ONE_RANK), [-INF, 3.0, 0.0]);
    }
}
