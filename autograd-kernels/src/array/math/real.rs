//! Building blocks of the formulas: bit-level steps of each element type.

use num_traits::Float;

use super::tables::Tables;

pub trait Real: Float + Tables {
    /// 1.5 · 2^mantissa bits: adding it leaves the nearest integer in the low bits.
    const MAGIC: Self;
    /// `MAGIC` plus the bias of an exponent.
    const BIASED: Self;
    /// 2^mantissa bits: from here on every value is an integer.
    const INTEGERS: Self;

    fn lit(value: f64) -> Self;
    fn wide(self) -> f64;
    /// self · b + c, in one rounding if `FMA`.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// self · b - product exactly, `product` being self · b rounded; without a fused multiply-add.
    fn product_lost(self, b: Self, product: Self) -> Self;
    /// With n = self - MAGIC: 2ⁿ, for n that give a normal number.
    fn pow2(self) -> Self;
    /// With n = self - BIASED: 2ⁿ, with one addition less.
    fn biased_pow2(self) -> Self;
    /// With n = self - MAGIC: two normal factors of 2^(n + shift), for n whose power is not normal.
    fn pow2_halves(self, shift: i32) -> (Self, Self);
    /// Whether n = self - MAGIC is odd.
    fn odd(self) -> bool;
    /// With n = t - MAGIC: self negated if n mod 4 is 2 or 3.
    fn flip(self, t: Self) -> Self;
    /// self = 2^e (1 + f) with √½ ≤ 1 + f < √2, for self > 0; gives (e, f).
    fn split(self) -> (Self, Self);
    /// As `split`, for normal numbers; also 2^-e if e is not the largest exponent.
    fn split_normal(self) -> (Self, Self, Self);
    /// x = n π/2 + r + low without a fused multiply-add; gives (n + MAGIC, r, low).
    fn quadrant_plain(self) -> (Self, Self, Self);
    /// ln(1 + f) - f on √½ - 1 ≤ f ≤ √2 - 1.
    fn ln_1p_tail<const FMA: bool>(f: Self) -> Self;
    /// x^y for x ≥ 0.
    fn pow_magnitude<const FMA: bool>(x: Self, y: Self) -> Self;

    /// The nearest integer; ties go to the even one.
    fn to_even(self) -> Self;
}

#[inline(always)]
pub fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// The bit-level half of [`Real`], which differs between the two types in widths only.
macro_rules! bit_level {
    ($float:ident, $bits:ident, mantissa $mantissa:literal, bias $bias:literal) => {
        const MAGIC: $float = 1.5 / $float::EPSILON;
        const BIASED: $float = Self::MAGIC + $bias as $float;
        const INTEGERS: $float = 1.0 / $float::EPSILON;

        #[inline(always)]
        fn lit(value: f64) -> $float {
            value as $float
        }

        #[inline(always)]
        fn wide(self) -> f64 {
            self.into()
        }

        #[inline(always)]
        fn fma<const FMA: bool>(self, b: $float, c: $float) -> $float {
            if FMA { self.mul_add(b, c) } else { self * b + c }
        }

        #[inline(always)]
        fn pow2(self) -> $float {
            $float::from_bits(self.to_bits().wrapping_add($bias) << $mantissa)
        }

        #[inline(always)]
        fn biased_pow2(self) -> $float {
            $float::from_bits(self.to_bits() << $mantissa)
        }

        #[inline(always)]
        fn pow2_halves(self, shift: i32) -> ($float, $float) {
            const MAGIC_BITS: $bits = <$float as Real>::MAGIC.to_bits();
            let both =
                self.to_bits().wrapping_sub(MAGIC_BITS.wrapping_sub((2 * $bias + shift) as $bits));
            let half = both >> 1;
            (
                $float::from_bits(half << $mantissa),
                $float::from_bits(both.wrapping_sub(half) << $mantissa),
            )
        }

        #[inline(always)]
        fn odd(self) -> bool {
            self.to_bits() & 1 != 0
        }

        #[inline(always)]
        fn flip(self, t: $float) -> $float {
            $float::from_bits(self.to_bits() ^ ((t.to_bits() & 2) << ($bits::BITS - 2)))
        }

        #[inline(always)]
        fn split(self) -> ($float, $float) {
            const LIFT: $float = 1.0 / $float::EPSILON;
            let subnormal = self < $float::MIN_POSITIVE;
            let (e, f, _) = select(subnormal, self * LIFT, self).split_normal();
            (e - select(subnormal, $mantissa as $float, 0.0), f)
        }

        #[inline(always)]
        fn split_normal(self) -> ($float, $float, $float) {
            const ONE: $bits = $bias << $mantissa;
            const SQRT_HALF: $bits = std::$float::consts::FRAC_1_SQRT_2.to_bits();
            const FRACTION: $bits = (1 << $mantissa) - 1;
            // The exponent becomes a float in the low bits of 2^mantissa: before AVX-512, no vector
            // instruction converts 64-bit integers.
            let shifted = self.to_bits().wrapping_add(ONE - SQRT_HALF);
            let e = $float::from_bits((shifted >> $mantissa) | Self::INTEGERS.to_bits())
                - (Self::INTEGERS + $bias as $float);
            let m = $float::from_bits((shifted & FRACTION).wrapping_add(SQRT_HALF));
            let inverse = $float::from_bits((2 * ONE).wrapping_sub(shifted & !FRACTION));
            (e, m - 1.0, inverse)
        }

        #[inline(always)]
        fn to_even(self) -> $float {
            self.round_ties_even()
        }
    };
}
pub(super) use bit_level;
