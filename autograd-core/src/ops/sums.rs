//! Sums and products by element type: floats in their own type, integers exactly.

use super::reduce::Prod;
use super::{Arithmetic, Sums};
use crate::array::Value;
use crate::array::integer::{self, Additions, Overflow, total_axes};
use crate::array::pick::{self, AxisShape};
use crate::array::reduce::{Plus, fold_axes};
use crate::error::Result;

macro_rules! totals {
    (floats: $($f:ty)*; integers: $($i:ty)*;) => {
        $(impl Sums for $f {
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
        $(impl Sums for $i {
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

totals! {
    floats: f32 f64;
    integers: i32 i64 u8;
}
