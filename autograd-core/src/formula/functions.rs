//! The table of functions of one number: name, kernel, error, derivative.

/// Hands the table to a macro: for each function its doc, its method, its variant in a program, its
/// kernel in [`Math`](crate::array::math::Math), the largest error in ulp for f32 and f64 at any
/// level, and its derivative in `x` and `y = f(x)`; `flat` where the derivative is 0 or undefined
/// everywhere.
macro_rules! functions {
    ($table:ident) => {
        $table! {
            /// `e` to the power `x`.
            exp Exp v_exp [1.04, 0.99] { |x, y| y };
            /// `exp(x) - 1`, accurate near 0.
            #[doc(alias = "expm1")]
            exp_m1 ExpM1 v_exp_m1 [1.40, 1.18] { |x, y| y + 1.0 };
            /// The natural logarithm; NaN below 0.
            #[doc(alias = "log")]
            ln Ln v_ln [0.95, 0.84] { |x, y| x.recip() };
            /// `ln(1 + x)`, accurate near 0.
            #[doc(alias = "log1p")]
            ln_1p Ln1p v_ln_1p [1.06, 0.86] { |x, y| (x + 1.0).recip() };
            /// The logarithm to base 2; exact for powers of 2.
            log2 Log2 v_log2 [2.01, 2.04] { |x, y| std::f64::consts::LOG2_E / x };
            /// The logarithm to base 10.
            log10 Log10 v_log10 [1.99, 1.79] { |x, y| std::f64::consts::LOG10_E / x };
            /// The hyperbolic tangent.
            tanh Tanh v_tanh [1.20, 1.13] { |x, y| 1.0 - y * y };
            /// The logistic function `1 / (1 + exp(-x))`.
            sigmoid Sigmoid v_sigmoid [1.47, 1.35] { |x, y| y * (1.0 - y) };
            /// `ln(1 + exp(x))`, without overflow.
            softplus Softplus v_softplus [1.76, 1.55] { |x, y| x.sigmoid() };
            /// The Gaussian error function.
            erf Erf v_erf [1.27, 1.31] { |x, y| std::f64::consts::FRAC_2_SQRT_PI * (-(x * x)).exp() };
            /// The sine of an angle in radians, of any size.
            sin Sin v_sin [0.95, 0.77] { |x, y| x.cos() };
            /// The cosine of an angle in radians, of any size.
            cos Cos v_cos [0.94, 0.86] { |x, y| -x.sin() };
            /// The tangent of an angle in radians, of any size.
            tan Tan v_tan [1.99, 1.62] { |x, y| y * y + 1.0 };
            /// The inverse sine, in [-π/2, π/2]; NaN outside [-1, 1].
            asin Asin v_asin [1.68, 1.71] { |x, y| (1.0 - x * x).rsqrt() };
            /// The inverse cosine, in [0, π]; NaN outside [-1, 1].
            acos Acos v_acos [1.14, 1.15] { |x, y| -(1.0 - x * x).rsqrt() };
            /// The inverse tangent, in [-π/2, π/2].
            atan Atan v_atan [1.24, 1.34] { |x, y| (x * x + 1.0).recip() };
            /// The hyperbolic sine.
            sinh Sinh v_sinh [1.62, 1.58] { |x, y| x.cosh() };
            /// The hyperbolic cosine.
            cosh Cosh v_cosh [1.42, 1.42] { |x, y| x.sinh() };
            /// The square root, correctly rounded; NaN below 0.
            sqrt Sqrt v_sqrt [0.5, 0.5] { |x, y| 0.5 / y };
            /// `1 / sqrt(x)`.
            rsqrt Rsqrt v_rsqrt [1.49, 1.48] { |x, y| y * y * y * -0.5 };
            /// `1 / x`, correctly rounded.
            recip Recip v_recip [0.5, 0.5] { |x, y| -(y * y) };
            /// The absolute value; the derivative at 0 is 0.
            abs Abs v_abs [0.0, 0.0] { |x, y| x.signum() };
            /// -1 or 1, or `x` itself if it is 0 or NaN; its derivative is 0.
            signum Signum v_signum [0.0, 0.0] { flat };
            /// The greatest integer not above `x`; its derivative is 0.
            floor Floor v_floor [0.0, 0.0] { flat };
            /// The least integer not below `x`; its derivative is 0.
            ceil Ceil v_ceil [0.0, 0.0] { flat };
            /// The nearest integer, halves to the even one; its derivative is 0.
            round Round v_round [0.0, 0.0] { flat };
            /// `x` without its fraction; its derivative is 0.
            trunc Trunc v_trunc [0.0, 0.0] { flat };
        }
    };
}
pub(crate) use functions;
