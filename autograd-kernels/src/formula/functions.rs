//! The tables of functions of one number (name, kernel, error, rule) and of two (the same, with two rules).
//! Numbers, slopes, programs and the ops on tensors are generated from them.

/// Passes the table to a macro: for each function its doc, its method,
/// its variant in a program, its kernel in [`Math`](crate::array::math::Math), the largest error in
/// ulp for f32 and f64 at any level, numbers and their results for an example, and its rule: the derivative times
/// `dy`, for the slope of the result and the gradient of `x`, in `x` or `y = f(x)`. `flat` if the derivative is 0
/// or undefined everywhere.
#[macro_export]
macro_rules! functions {
    ($table:ident) => {
        $crate::formula::tensor_functions! {
            $table
            /// `x` without its fraction; its derivative is 0.
            trunc Trunc v_trunc [0.0, 0.0, "-1.5, 2.5" => "-1.0, 2.0"] { flat };
        }
    };
}
pub use functions;

/// As [`functions`], those that tensors have too.
#[macro_export]
macro_rules! tensor_functions {
    ($table:ident $($before:tt)*) => {
        $table! {
            $($before)*
            /// `e` to the power `x`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 8.9e-8.
            exp Exp v_exp [1.04, 0.99, "0.0, 1.0" => "1.0, std::f64::consts::E"] { |y, dy| dy * y };
            /// `exp(x) - 1`, accurate near 0.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 7.2e-7.
            #[doc(alias = "expm1")]
            exp_m1 ExpM1 v_exp_m1 [1.44, 1.18, "1e-9" => "1.0000000005e-9"] { |y, dy| dy * (y + 1.0) };
            /// The natural logarithm; NaN below 0.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 6.0e-8.
            ln Ln v_ln [0.95, 0.84, "1.0, std::f64::consts::E" => "0.0, 1.0"] { |x, dy| dy / x };
            /// `ln(1 + x)`, accurate near 0.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 8.9e-8.
            #[doc(alias = "log1p")]
            ln_1p Ln1p v_ln_1p [1.06, 0.86, "1e-9" => "9.999999995e-10"] { |x, dy| dy / (x + 1.0) };
            /// The logarithm to base 2; exact for powers of 2.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.2e-7.
            log2 Log2 v_log2 [1.31, 1.04, "8.0" => "3.0"] { |x, dy| dy / x * std::f64::consts::LOG2_E };
            /// The logarithm to base 10.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 8.3e-8.
            log10 Log10 v_log10 [1.31, 0.93, "1000.0" => "3.0"] { |x, dy| dy * std::f64::consts::LOG10_E / x };
            /// The hyperbolic tangent `sinh(x) / cosh(x)`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 5.4e-7.
            tanh Tanh v_tanh [1.22, 1.07, "std::f64::consts::LN_2" => "0.6"] { |y, dy| dy * (1.0 - y * y) };
            /// The logistic function `1 / (1 + exp(-x))`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 5.2e-7.
            sigmoid Sigmoid v_sigmoid [1.47, 1.35, "0.0, 1000.0" => "0.5, 1.0"] { |y, dy| dy * (y * (1.0 - y)) };
            /// `ln(1 + exp(x))`, without overflow.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.3e-7.
            softplus Softplus v_softplus [1.84, 1.55, "0.0, 1000.0" => "std::f64::consts::LN_2, 1000.0"]
                { |x, dy| dy * x.sigmoid() };
            /// The Gaussian error function, `2 / sqrt(π)` times the integral of `exp(-t²)` from 0 to `x` (DLMF
            /// 7.2.1).
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.8e-7.
            erf Erf v_erf [1.34, 1.31, "0.5" => "0.5204998778130465"]
                { |x, dy| dy * (-(x * x)).exp() * std::f64::consts::FRAC_2_SQRT_PI };
            /// The inverse of [`erf`](Self::erf) (DLMF 7.17): ±∞ at ±1, NaN beyond.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.2e-6.
            erfinv Erfinv v_erfinv [0.51, 2.3, "0.5" => "0.4769362762044699"]
                { |y, dy| dy * (y * y).exp() * 0.886_226_925_452_758 };
            /// The derivative of [`lgamma`](Self::lgamma) (DLMF 5.2.2); ∓∞ at ±0, NaN at negative integers and at
            /// -∞. The error of a result for `x < 0` is in ulp of 1 or `ln(-x)`, if these are larger.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 4.2e-7.
            #[doc(alias = "psi")]
            #[doc(alias = "polygamma")]
            digamma Digamma v_digamma [0.51, 3.2, "1.0" => "-0.5772156649015329"] { |x, dy| dy * x.trigamma() };
            /// The logarithm of the absolute value of the gamma function (DLMF 5.2.1); ∞ at 0, negative integers and
            /// ±∞. The error of a result for `x < 0` is in ulp of 1 or `lgamma(-x)`, if these are larger.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 6.0e-8.
            #[doc(alias = "gammaln")]
            lgamma Lgamma v_lgamma [0.51, 2.5, "5.0" => "24_f64.ln()"] { |x, dy| dy * x.digamma() };
            /// The sine of an angle in radians, of any size.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 7.9e-8.
            sin Sin v_sin [0.95, 0.77, "std::f64::consts::FRAC_PI_6" => "0.5"] { |x, dy| dy * x.cos() };
            /// The cosine of an angle in radians, of any size.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 7.9e-8.
            cos Cos v_cos [0.95, 0.86, "std::f64::consts::FRAC_PI_3" => "0.5"] { |x, dy| -(dy * x.sin()) };
            /// The tangent of an angle in radians, of any size.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 2.3e-7.
            tan Tan v_tan [1.41, 1.15, "std::f64::consts::FRAC_PI_4" => "1.0"] { |y, dy| dy * (y * y + 1.0) };
            /// The inverse sine, in [-π/2, π/2]; NaN outside [-1, 1].
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.3e-7.
            #[doc(alias = "arcsin")]
            asin Asin v_asin [1.70, 1.71, "0.5" => "std::f64::consts::FRAC_PI_6"]
                { |x, dy| dy / x.abs().lt(0.5).select(1.0 - x * x, (1.0 - x) * (1.0 + x)).sqrt() };
            /// The inverse cosine, in [0, π]; NaN outside [-1, 1].
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.3e-7.
            #[doc(alias = "arccos")]
            acos Acos v_acos [1.17, 1.15, "0.5" => "std::f64::consts::FRAC_PI_3"]
                { |x, dy| -(dy / x.abs().lt(0.5).select(1.0 - x * x, (1.0 - x) * (1.0 + x)).sqrt()) };
            /// The inverse tangent, in [-π/2, π/2].
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.0e-7.
            #[doc(alias = "arctan")]
            atan Atan v_atan [1.37, 1.34, "1.0" => "std::f64::consts::FRAC_PI_4"] { |x, dy| dy / (x * x + 1.0) };
            /// The hyperbolic sine `(exp(x) - exp(-x)) / 2`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.2e-7.
            sinh Sinh v_sinh [1.62, 1.58, "std::f64::consts::LN_2" => "0.75"] { |x, dy| dy * x.cosh() };
            /// The hyperbolic cosine `(exp(x) + exp(-x)) / 2`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.3e-7.
            cosh Cosh v_cosh [1.51, 1.42, "std::f64::consts::LN_2" => "1.25"] { |x, dy| dy * x.sinh() };
            /// The square root, correctly rounded; NaN below 0.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 8.9e-8.
            sqrt Sqrt v_sqrt [0.5, 0.5, "0.25, 9.0" => "0.5, 3.0"] { |y, dy| dy / y * 0.5 };
            /// `1 / sqrt(x)`.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 3.8e-7.
            rsqrt Rsqrt v_rsqrt [1.50, 1.48, "0.25, 4.0" => "2.0, 0.5"] { |y, dy| dy * -0.5 * y * y * y };
            /// `1 / x`, correctly rounded.
            ///
            /// Error of the gradient in `f32`, at all numbers: at most 1.8e-7.
            #[doc(alias = "reciprocal")]
            recip Recip v_recip [0.5, 0.5, "-2.0, 4.0" => "-0.5, 0.25"] { |y, dy| -(dy * y * y) };
            /// The absolute value; the derivative at 0 is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            abs Abs v_abs [0.0, 0.0, "-2.0, 3.0" => "2.0, 3.0"] { |x, dy| dy * x.signum() };
            /// -1 or 1, or `x` itself if it is 0 or NaN; its derivative is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            signum Signum v_signum [0.0, 0.0, "-2.0, 0.0, 3.0" => "-1.0, 0.0, 1.0"] { flat };
            /// The greatest integer not above `x`; its derivative is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            floor Floor v_floor [0.0, 0.0, "-1.5, 2.5" => "-2.0, 2.0"] { flat };
            /// The least integer not below `x`; its derivative is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            ceil Ceil v_ceil [0.0, 0.0, "-1.5, 2.5" => "-1.0, 3.0"] { flat };
            /// The nearest integer, halves to the even one; its derivative is 0.
            ///
            /// The gradient in `f32` is exact at all numbers.
            round Round v_round [0.0, 0.0, "0.5, 1.5, 2.7" => "0.0, 2.0, 3.0"] { flat };
        }
    };
}
pub use tensor_functions;

/// The argument that a rule names, `x` or `y`.
#[macro_export]
macro_rules! named {
    (x, $x:expr, $y:expr) => {
        $x
    };
    (y, $x:expr, $y:expr) => {
        $y
    };
}
pub use named;

/// The argument that a rule of two numbers names.
macro_rules! named_of_two {
    (a, [$a:expr, $b:expr, $y:expr], $dy:expr) => {
        $a
    };
    (b, [$a:expr, $b:expr, $y:expr], $dy:expr) => {
        $b
    };
    (y, [$a:expr, $b:expr, $y:expr], $dy:expr) => {
        $y
    };
    (dy, [$a:expr, $b:expr, $y:expr], $dy:expr) => {
        $dy
    };
}
pub(super) use named_of_two;

/// Passes the functions of two numbers to a macro, after the tokens given: for each its doc if its methods
/// are generated, its method in a formula, its variant in a program, the name of the op, the largest error in ulp
/// for f32 and f64, its kernel, and its rules: the derivatives by `a` and by `b` times `dy`, in `a`, `b` or
/// `y = f(a, b)`. If the result is one of the two, the rule says when it is `b`.
#[macro_export]
macro_rules! binaries {
    ($table:ident $($more:tt)*) => {
        $crate::formula::binary_functions! {
            $table
            $($more)*
            add Add add [0.5, 0.5] |a, b| a + b, { |dy| dy, |dy| dy };
            sub Sub sub [0.5, 0.5] |a, b| a - b, { |dy| dy, |dy| -dy };
            mul Mul mul [0.5, 0.5] |a, b| a * b, { |b, dy| dy * b, |a, dy| dy * a };
            div Div div [0.5, 0.5] |a, b| a / b, { |b, dy| dy / b, |b, y, dy| -(dy * y) / b };
            // The first rule is 0 where b is 0, even if a = 0, where a^(b-1) is infinite. The second is
            // 0 where a is 0 and b is not negative: there 0^b is constant.
            pow Pow pow [0.54, 0.92] |a, b| a.v_pow::<FMA>(b), {
                |a, b, dy| dy * b.eq(0.0).select(0.0, b * a.powf(b - 1.0)),
                |a, b, y, dy| dy * (a.eq(0.0) & b.ge(0.0)).select(0.0, y * a.ln())
            };
            max Max maximum [0.0, 0.0] |a, b| a.v_max::<FMA>(b), { b if |a, b| a.lt(b) };
            min Min minimum [0.0, 0.0] |a, b| a.v_min::<FMA>(b), { b if |a, b| b.lt(a) };
        }
    };
}
pub use binaries;

/// As [`binaries`], those whose methods of formulas, tensors and variables are generated, with numbers and their
/// results for an example.
#[macro_export]
macro_rules! binary_functions {
    ($table:ident $($before:tt)*) => {
        $table! {
            $($before)*
            /// The length `sqrt(x² + other²)` of a vector, without overflow; infinite if either is, even
            /// beside NaN. The derivatives at the origin are 0.
            hypot Hypot hypot [1.1, 1.1, "3.0, 3e200", "4.0, 4e200" => "5.0, 5e200"]
                |a, b| of_two::hypot::<T, FMA>(a, b), {
                |a, y, dy| y.eq(0.0).select(0.0, dy * (a / y)),
                |b, y, dy| y.eq(0.0).select(0.0, dy * (b / y))
            };
            /// The angle in [-π, π] of the point with ordinate `x` and abscissa `other`, as `f64::atan2`
            /// counts it. The derivatives at the origin are 0.
            #[doc(alias = "arctan2")]
            atan2 Atan2 atan2 [1.5, 1.6, "1.0", "-1.0" => "3.0 * std::f64::consts::FRAC_PI_4"]
                |a, b| of_two::atan2::<T, FMA>(a, b), {
                |a, b, dy| (a.eq(0.0) & b.eq(0.0)).select(0.0, dy * (b / a.hypot(b)) / a.hypot(b)),
                |a, b, dy| (a.eq(0.0) & b.eq(0.0)).select(0.0, -(dy * (a / a.hypot(b)) / a.hypot(b)))
            };
            /// `ln(exp(x) + exp(other))`, as in NumPy, without overflow. Where the result is near 0, the error is
            /// in units of the larger argument.
            logaddexp LogAddExp logaddexp [1.4, 1.4, "1000.0", "1000.0" => "1000.0 + std::f64::consts::LN_2"]
                |a, b| of_two::logaddexp::<T, FMA>(a, b), {
                |a, b, dy| dy * a.eq(b).select(0.5, (a - b).sigmoid()),
                |a, b, dy| dy * a.eq(b).select(0.5, (b - a).sigmoid())
            };
            /// `x * ln(other)`, as in SciPy; 0 where `x` is 0, unless `other` is NaN. There the derivative by `other`
            /// is 0, and that by `x` is 0 unless `other` is positive.
            xlogy Xlogy xlogy [1.5, 1.6, "0.0, 2.0", "0.0, std::f64::consts::E" => "0.0, 2.0"]
                |a, b| of_two::xlogy::<T, FMA>(a, b), {
                |a, b, dy| (a.eq(0.0) & b.le(0.0)).select(0.0, dy * b.ln()),
                |a, b, dy| (a.eq(0.0) & !b.is_nan()).select(0.0, dy * (a / b))
            };
            /// `x - other * floor(x / other)`, as `%` in Python and `remainder` in NumPy and PyTorch: the
            /// sign is that of `other`. NaN where `other` is 0.
            #[doc(alias = "mod")]
            remainder Remainder remainder [0.5, 0.5, "-7.0, 7.0", "3.0, -3.0" => "2.0, -2.0"]
                |a, b| of_two::remainder(a, b), {
                |dy| dy,
                // The result is `b` only if the quotient is -1: by rounding, or if `b` is infinite.
                |a, b, y, dy| dy * y.eq(b).select(1.0, -((a - y) / b).round())
            };
            /// The magnitude of `x` with the sign of `other`, also of a zero, as in IEEE 754. The derivative by `x`
            /// at 0 is 0.
            copysign Copysign copysign [0.0, 0.0, "2.0, 0.5", "-1.0, 3.0" => "-2.0, 0.5"] |a, b| a.copysign(b), {
                |a, y, dy| dy * (a.signum() * y.signum()),
                flat
            };
        }
    };
}
pub use binary_functions;

/// Passes to a macro the functions of two numbers with a condition as the result.
macro_rules! conditions {
    ($table:ident) => {
        $table! {
            less Less |a, b| a < b;
            less_or_equal LessOrEqual |a, b| a <= b;
            equal Equal |a, b| a == b;
        }
    };
}
pub(super) use conditions;
