//! Ops made of formulas, as users' elementwise ops are: functions of two tensors, of which sums, differences
//! and products have shorter rules in [`binary`](super::binary), functions of a tensor and a number, dropout.

use std::sync::Arc;

use super::binary_kernels::{Div, Maximum, Minimum, Pow};
use super::elementwise::{ElementwiseOp, Handle, Info, Pair, Reduction, formulas, pulled};
use super::{Binary, Float};
use crate::formula::{Compiled, Dual, Lane, Lanewise, Mask, Program, Real};

/// The gradients of `a` and `b`, from `a`, `b` and the gradient of the result.
struct Derived<F>(F);

impl<F: Lanewise<2, 0, 1>> Lanewise<3, 0, 2> for Derived<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [a, b, dy]: [Real<L>; 3], _: [Mask<L>; 0]) -> [Real<L>; 2] {
        let along = |a, b| self.0.call::<Dual<L>>([a, b], []);
        let of_a = along(Real::moving(a, 1.0), Real::constant(b));
        let of_b = along(Real::constant(a), Real::moving(b, 1.0));
        [pulled(&of_a, &[dy]), pulled(&of_b, &[dy])]
    }
}

/// An op of two numbers with one result. Its backward has `GIVEN` inputs and `GRADIENTS` results.
type PairOf<F, B, const GIVEN: usize, const GRADIENTS: usize> =
    Pair<Compiled<F, 2, 0, 1>, Compiled<B, GIVEN, 0, GRADIENTS>, Program>;

macro_rules! functions {
    ($($method:ident $name:ident;)*) => {
        $(
            mod $method {
                use super::*;

                pub(super) static OP: PairOf<$name, Derived<$name>, 3, 2> =
                    Pair::new(&INFO, Compiled($name), Compiled(Derived($name)), None);

                static INFO: Info = Info::new(
                    stringify!($method),
                    &["x", "other"],
                    &[true, true],
                    [&[0, 1], &[]],
                    Reduction::None,
                );
            }
        )*

        impl Binary {
            /// Returns the op whose backward is this function's rule, if `binary` has no shorter rule.
            pub(super) fn derived<T: Float>(self) -> Option<&'static dyn ElementwiseOp<T>> {
                match self {
                    $(Self::$name => Some(&$method::OP),)*
                    _ => None,
                }
            }
        }
    };
}

functions! {
    div Div;
    pow Pow;
    maximum Maximum;
    minimum Minimum;
}

/// Functions of a tensor and a number. Each call creates the op, as the number is part of its formulas.
macro_rules! with_number {
    ($($name:ident |$x:ident, $number:ident, $dy:ident| $y:expr, $dx:expr;)*) => {$(
        pub(super) fn $name<T: Float>(number: f64) -> Handle<T> {
            formulas! {
                Forward($number) |$x| [$y];
                Backward($number) |$x, $dy| [$dx];
            }

            static INFO: Info =
                Info::new(stringify!($name), &["x"], &[true], [&[0], &[]], Reduction::None);
            /// No derivative for a check of backward.
            const NO_OTHER: Option<Program> = None;
            let (forward, backward) = (Compiled(Forward(number)), Compiled(Backward(number)));
            Handle::Shared(Arc::new(Pair::new(&INFO, forward, backward, NO_OTHER)))
        }
    )*};
}

with_number! {
    leaky_relu |x, slope, dy| x.gt(0.0).select(x, x * slope), x.gt(0.0).select(dy, slope * dy);
    // The exponential's argument is limited, so that a value that is not selected stays finite. The
    // slope is not computed from the function, which is near -1 where the slope is near 0.
    elu |x, alpha, dy| x.gt(0.0).select(x, x.min(0.0).exp_m1() * alpha),
        x.gt(0.0).select(dy, x.min(0.0).exp() * alpha * dy);
    // At a tie, the tensor gets the gradient, and so does NaN.
    maximum |x, bound, dy| x.max(bound), x.lt(bound).select(0.0, dy);
    minimum |x, bound, dy| x.min(bound), x.gt(bound).select(0.0, dy);
}

/// Returns dropout of `x` by the drawn factors as an op: 0 where the factor is 0, even if `x` is not finite.
pub(super) fn dropped<T: Float>() -> Handle<T> {
    formulas! {
        Forward |x, factor| [factor.eq(0.0).select(0.0, x * factor)];
        Backward |factor, dy| [factor.eq(0.0).select(0.0, dy * factor)];
    }

    static INFO: Info =
        Info::new("dropout", &["self", "factors"], &[true, false], [&[1], &[]], Reduction::None);
    static OP: PairOf<Forward, Backward, 2, 1> =
        Pair::new(&INFO, Compiled(Forward), Compiled(Backward), None);
    Handle::Static(&OP)
}
