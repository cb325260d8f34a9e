//! Floats of 16 bits.

/// A 16-bit float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// IEEE's half precision: 11 bits of precision, up to 65504.
    F16,
    /// The upper 16 bits of an `f32`: 8 bits of precision, and the range of `f32`.
    BF16,
}

impl Half {
    /// Returns the number of fraction bits, and the exponent of the smallest normal number.
    fn layout(self) -> (u32, i32) {
        match self {
            Self::F16 => (10, -14),
            Self::BF16 => (7, -126),
        }
    }

    fn infinity(self) -> u16 {
        0x7fff >> self.layout().0 << self.layout().0
    }

    /// Returns the bits of the nearest number, ties to even. A number beyond the range becomes infinite.
    pub(super) fn bits_of(self, x: f64) -> u16 {
        let sign = u16::from(x.is_sign_negative()) << 15;
        let (fraction, least) = self.layout();
        if x.is_nan() {
            return sign | self.infinity() | 1 << (fraction - 1);
        }
        if x.is_infinite() {
            return sign | self.infinity();
        }
        let exponent = ((x.abs().to_bits() >> 52) as i32 - 1023).max(least);
        // In units of the last place: exact, as the divisor is a power of two. The leading bit, or
        // a carry of the rounding, adds 1 to the exponent.
        let units = (x.abs() / 2_f64.powi(exponent - fraction as i32)).round_ties_even() as u64;
        let bits = (((exponent - least) as u64) << fraction) + units;
        sign | bits.min(u64::from(self.infinity())) as u16
    }

    /// Returns the number with these bits, which is exact in `f32`.
    pub(super) fn value_of(self, bits: u16) -> f32 {
        match self {
            Self::BF16 => f32::from_bits(u32::from(bits) << 16),
            Self::F16 => {
                let (exponent, fraction) = (i32::from(bits >> 10) & 31, f32::from(bits & 1023));
                let size = match exponent {
                    31 if fraction == 0.0 => f32::INFINITY,
                    31 => f32::NAN,
                    0 => fraction * 2_f32.powi(-24),
                    _ => (fraction + 1024.0) * 2_f32.powi(exponent - 25),
                };
                if bits >> 15 == 1 { -size } else { size }
            }
        }
    }
}
