//! Arithmetic by element type. Sums and products of floats are computed in their own type, of integers exactly.

use super::Arithmetic;
use super::reduce::Prod;
use crate::array::Value;
use crate::array::integer::{self, Additions, Overflow, total_axes};
use crate::array::pick::{self, AxisShape};
use crate::array::reduce::{Plus, fold_axes};
use crate::error::Result;

macro_rules! arithmetic {
    (floats: $($f:ty)*; integers: $($i:ty)*;) => {
        $(impl Arithmetic for $f {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self {
                if self < other || self.is_nan() { self } else { other }
            }
            const LOWEST: Self = <$f>::NEG_INFINITY;
            const HIGHEST: Self = <$f>::INFINITY;
            const EXACT: bool = false;
            fn count(n: usize) -> Self { n as $f }
            fn rank(self, descending: bool) -> i64 { rank(self.into(), descending) }
            fn sum(_: &'static str, x: &Value<$f>, axes: &[usize]) -> Result<Value<$f>> {
                Ok(fold_axes(x, axes, &Plus))
            }
            fn prod(_: &'static str, x: &Value<$f>, axes: &[usize]) -> Result<Value<$f>> {
                Ok(fold_axes(x, axes, &Prod))
            }
            fn running(
                _: &'static str,
                x: Value<$f>,
                around: AxisShape,
                from_end: bool,
            ) -> Result<Value<$f>> {
                Ok(pick::changed(x, |data| {
                    pick::accumulate(data, around, from_end, Arithmetic::plus);
                }))
            }
            fn added(
                _: &'static str,
                x: Value<$f>,
                additions: &impl Additions<$f>,
            ) -> Result<Value<$f>> {
                Ok(pick::changed(x, |data| additions.add(data, Arithmetic::plus)))
            }
        })*
        // Elementwise, integers wrap, as in NumPy; a division by zero panics, as in Rust.
        // Sums and products do not wrap.
        $(impl Arithmetic for $i {
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn over(self, other: Self) -> Self { self.wrapping_div(other) }
            #[inline(always)]
            fn greater(self, other: Self) -> Self { Ord::max(self, other) }
            #[inline(always)]
            fn lesser(self, other: Self) -> Self { Ord::min(self, other) }
            const LOWEST: Self = <$i>::MIN;
            const HIGHEST: Self = <$i>::MAX;
            const EXACT: bool = true;
            fn count(n: usize) -> Self { n as $i }
            fn rank(self, descending: bool) -> i64 { if descending { !i64::from(self) } else { self.into() } }
            fn sum(op: &'static str, x: &Value<$i>, axes: &[usize]) -> Result<Value<$i>> {
                Ok(total_axes::<$i, false>(op, x, axes)?)
            }
            fn prod(op: &'static str, x: &Value<$i>, axes: &[usize]) -> Result<Value<$i>> {
                Ok(total_axes::<$i, true>(op, x, axes)?)
            }
            fn running(
                op: &'static str,
                x: Value<$i>,
                around: AxisShape,
                from_end: bool,
            ) -> Result<Value<$i>> {
                let overflow = Overflow::default();
                let sums = pick::changed(x, |data| {
                    pick::accumulate(data, around, from_end, integer::plus(&overflow));
                });
                overflow.check::<$i>(op)?;
                Ok(sums)
            }
            fn added(
                op: &'static str,
                x: Value<$i>,
                additions: &impl Additions<$i>,
            ) -> Result<Value<$i>> {
                Ok(integer::added(op, x, additions)?)
            }
        })*
    };
}

fn rank(x: f64, descending: bool) -> i64 {
    if x.is_nan() {
        return i64::MAX;
    }
    // The bits of positive numbers are in order, those of negative ones reversed. Adding 0 removes -0.
    let bits = (if descending { -x } else { x } + 0.0).to_bits().cast_signed();
    bits ^ (bits >> 63 & i64::MAX)
}

arithmetic! {
    floats: f32 f64;
    integers: i32 i64 u8;
}
