//! Functions of two numbers, as straight-line code but for [`remainder`].

use super::{Math, select};

/// `sqrt(a² + b²)`; the squares neither overflow nor underflow. Infinite if either is, even beside NaN.
#[inline(always)]
pub fn hypot<T: Math, const FMA: bool>(a: T, b: T) -> T {
    let one = T::lit(1.0);
    let ([high, down], [low, up]) = const {
        match size_of::<T>() {
            4 => ([60, -66], [-60, 90]),
            _ => ([500, -520], [-450, 600]),
        }
    };
    let power = |exponent: i32| T::lit(f64::from_bits(((1023 + exponent) as u64) << 52));
    let (a, b) = (a.abs(), b.abs());
    let largest = select(a > b, a, b);
    let scale = |large: T, small: T| {
        select(largest > power(high), large, select(largest < power(low), small, one))
    };
    let factor = scale(power(down), power(up));
    let (x, y) = (a * factor, b * factor);
    let root = x.fma::<FMA>(x, y * y).sqrt() * scale(power(-down), power(-up));
    select((a == T::infinity()) | (b == T::infinity()), T::infinity(), root)
}

/// The angle of the point `(x, y)`, in [-π, π], with the signs of zeros.
#[inline(always)]
pub fn atan2<T: Math, const FMA: bool>(y: T, x: T) -> T {
    let (zero, one) = (T::lit(0.0), T::lit(1.0));
    let (a, b) = (y.abs(), x.abs());
    let far = a > b;
    let (small, large) = (select(far, b, a), select(far, a, b));
    // Equal are also two zeros, and two infinities.
    let ratio = select(small == large, select(large == zero, zero, one), small / large);
    let (t, tail) = T::atan_parts::<FMA>(ratio);
    let [half, half_low, _] = T::HALF_PI;
    let left = one.copysign(x) < zero;
    let upper = select(left, (half + t) + (half_low + tail), (half - t) + (half_low - tail));
    let lower = select(left, (T::PI_HI - t) + (T::PI_LO - tail), t + tail);
    select(far, upper, lower).copysign(y)
}

/// `ln(exp(a) + exp(b))`, without overflow.
#[inline(always)]
pub fn logaddexp<T: Math, const FMA: bool>(a: T, b: T) -> T {
    let largest = a.v_max::<FMA>(b);
    // Equal infinities have no difference.
    let apart = select(a == b, T::lit(0.0), (a - b).abs());
    largest + (-apart).v_exp::<FMA>().v_ln_1p::<FMA>()
}

/// `a * ln(b)`; 0 where `a` is 0, unless `b` is NaN.
#[inline(always)]
pub fn xlogy<T: Math, const FMA: bool>(a: T, b: T) -> T {
    let zero = T::lit(0.0);
    select((a == zero) & !b.is_nan(), zero, a * b.v_ln::<FMA>())
}

/// `a - b * floor(a / b)`, exact but for one rounding; the sign is that of `b`.
#[inline(always)]
pub fn remainder<T: Math>(a: T, b: T) -> T {
    let (zero, rest) = (T::lit(0.0), a % b);
    let other_side = (rest != zero) & ((rest < zero) != (b < zero));
    select(rest == zero, rest.copysign(b), select(other_side, rest + b, rest))
}
