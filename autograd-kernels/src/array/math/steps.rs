//! Bit-level steps of each element type.

#[inline(always)]
pub fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// The bit-level steps of [`Math`](super::Math), which differ between the two types in widths only.
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
            const MAGIC_BITS: $bits = <$float as Math>::MAGIC.to_bits();
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
