//! Functions of two tensors whose rules are derived from their formulas, as for users' ops: both
//! gradients in one pass. Sums, differences and products have equal rules, hand-written in
//! [`binary`](super::binary): these hand on a gradient that is the output's, and write a product
//! over it.

use std::sync::Arc;

use super::elementwise::{Handle, Info, Op, Pair, Reduction, formulas, pulled};
use super::kernels::{Div, Maximum, Minimum, Pow};
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
            pub(super) fn derived<T: Float>(self) -> Option<&'static dyn Op<T>> {
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

#[cfg(test)]
mod tests {
    use crate::{GradOptions, Tensor, fuse, grad, grad_with};

    type Pair = [Tensor<f64>; 2];

    /// The result and the gradients of two orders.
    fn all(f: impl Fn(&Pair) -> Tensor<f64>, inputs: &Pair) -> Vec<Vec<u64>> {
        let [a, b] = inputs;
        let y = f(inputs);
        let recorded = GradOptions::new().create_graph(true);
        let first = grad_with(&[&y.square().sum()], &[a, b], recorded).unwrap();
        let first: Vec<_> = first.into_iter().flatten().collect();
        let squares = first[0].square().sum() + first[1].square().sum();
        let second = grad(&[&squares], &[a, b]).unwrap();
        let bits = |t: &Tensor<f64>| t.to_vec().into_iter().map(f64::to_bits).collect();
        [y].iter().chain(&first).chain(&second).map(bits).collect()
    }

    #[test]
    fn rules_that_are_written_out_are_those_of_the_formulas() {
        let tensor = |shape: &[usize], from: f64| {
            let len = shape.iter().product();
            let numbers = (0..len).map(|i| (from + i as f64).sin()).collect();
            let tensor = Tensor::from_vec(shape, numbers).unwrap();
            tensor.set_stop_gradient(false);
            tensor
        };
        for shapes in [[&[2, 3][..], &[2, 3]], [&[40, 3], &[40, 3]], [&[4, 3], &[3]], [&[], &[5]]] {
            let inputs = [tensor(shapes[0], 0.3), tensor(shapes[1], 1.7)];
            let sum = all(|[a, b]| fuse([a, b], |[a, b]| a + b), &inputs);
            assert_eq!(all(|[a, b]| a + b, &inputs), sum, "{shapes:?}");
            let difference = all(|[a, b]| fuse([a, b], |[a, b]| a - b), &inputs);
            assert_eq!(all(|[a, b]| a - b, &inputs), difference, "{shapes:?}");
            let product = all(|[a, b]| fuse([a, b], |[a, b]| a * b), &inputs);
            assert_eq!(all(|[a, b]| a * b, &inputs), product, "{shapes:?}");
        }
    }
}
