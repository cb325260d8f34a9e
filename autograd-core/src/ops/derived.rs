//! Functions of two tensors whose rules are derived from their formulas, as those of users' ops are:
//! both gradients in one pass. Sums and products have the same rules, written out in
//! [`binary`](super::binary): a gradient that is the output's is handed on there, and a product is
//! written over it.

use std::borrow::Cow;
use std::sync::Arc;

use super::elementwise::{Handle, Info, Op, Pair, Reduction, pulled};
use super::kernels::{Div, Maximum, Minimum, Pow, With};
use super::{Binary, Float};
use crate::formula::{Compiled, Dual, Lane, Lanewise, Mask, Program, Real};

/// From `a`, `b` and the gradient of the result: the gradients of `a` and `b`.
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

/// The same of `a` and a number: that of `a` alone.
struct DerivedWith<F>(F, f64);

impl<F: Lanewise<2, 0, 1>> Lanewise<2, 0, 1> for DerivedWith<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [a, dy]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
        let result = self.0.call::<Dual<L>>([Real::moving(a, 1.0), Real::from(self.1)], []);
        [pulled(&result, &[dy])]
    }
}

const fn info(name: &'static str, with_number: bool, reduction: Reduction) -> Info {
    let positions: &'static [usize] = if with_number { &[0] } else { &[0, 1] };
    Info {
        name,
        reals: Cow::Borrowed(if with_number { &["x"] } else { &["x", "other"] }),
        differentiable: Cow::Borrowed(if with_number { &[true] } else { &[true, true] }),
        masks: Cow::Borrowed(&[]),
        outputs: 1,
        keeps_reals: Cow::Borrowed(positions),
        keeps_masks: Cow::Borrowed(&[]),
        keeps_outputs: Cow::Borrowed(&[]),
        gradients: Cow::Borrowed(&[0]),
        reduction,
    }
}

macro_rules! formulas {
    ($($method:ident $name:ident;)*) => {
        $(
            mod $method {
                use super::*;

                pub(super) static OP: Pair<
                    Compiled<$name, 2, 0, 1>,
                    Compiled<Derived<$name>, 3, 0, 2>,
                    Program,
                > = Pair::new(&INFO, Compiled($name), Compiled(Derived($name)), None);

                static INFO: Info = info(stringify!($method), false, Reduction::None);
            }
        )*

        impl Binary {
            /// The op whose derivative this function's rule is, if it has no shorter one.
            pub(super) fn derived<T: Float>(self) -> Option<&'static dyn Op<T>> {
                match self {
                    $(Self::$name => Some(&$method::OP),)*
                    _ => None,
                }
            }
        }
    };
}

formulas! {
    div Div;
    pow Pow;
    maximum Maximum;
    minimum Minimum;
}

/// The greater or the lesser of a tensor and a number. A tie goes to the tensor.
pub(super) fn bound<T: Float>(op: Binary, number: T) -> Handle<T> {
    static MAXIMUM: Info = info("maximum", true, Reduction::None);
    static MINIMUM: Info = info("minimum", true, Reduction::None);
    let number = number.into_f64();
    match op {
        Binary::Maximum => {
            with_number(&MAXIMUM, With(Maximum, number), DerivedWith(Maximum, number))
        }
        _ => with_number(&MINIMUM, With(Minimum, number), DerivedWith(Minimum, number)),
    }
}

/// An op of one tensor that a call makes anew, as a number is part of its formulas.
fn with_number<T: Float>(
    info: &'static Info,
    forward: impl Lanewise<1, 0, 1> + 'static,
    backward: impl Lanewise<2, 0, 1> + 'static,
) -> Handle<T> {
    /// No backward was written by hand.
    const NO_OTHER: Option<Program> = None;
    Handle::Shared(Arc::new(Pair::new(info, Compiled(forward), Compiled(backward), NO_OTHER)))
}

/// `x` above 0, elsewhere a function of `x` and a number, with its slope.
macro_rules! activations {
    ($($name:ident |$x:ident, $number:ident| $below:expr, $slope:expr;)*) => {$(
        pub(super) fn $name<T: Float>(number: f64) -> Handle<T> {
            struct Forward(f64);
            struct Backward(f64);

            impl Lanewise<1, 0, 1> for Forward {
                #[inline(always)]
                fn call<L: Lane>(&self, [$x]: [Real<L>; 1], _: [Mask<L>; 0]) -> [Real<L>; 1] {
                    let $number = Real::from(self.0);
                    [$x.gt(0.0).select($x, $below)]
                }
            }

            impl Lanewise<2, 0, 1> for Backward {
                #[inline(always)]
                fn call<L: Lane>(&self, [$x, dy]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
                    let $number = Real::from(self.0);
                    [$x.gt(0.0).select(dy, $slope * dy)]
                }
            }

            static INFO: Info = info(stringify!($name), true, Reduction::None);
            with_number(&INFO, Forward(number), Backward(number))
        }
    )*};
}

activations! {
    leaky_relu |x, slope| x * slope, slope;
    // The exponential is limited, so that what is not chosen stays finite. Its slope is not made of the
    // function, which is near -1 where the slope is near 0.
    elu |x, alpha| x.min(0.0).exp_m1() * alpha, x.min(0.0).exp() * alpha;
}

/// What dropout makes of `x` with the factors that it drew: 0 where the factor is, also of what is not
/// finite.
pub(super) fn dropped<T: Float>() -> Handle<T> {
    #[inline(always)]
    fn dropped<L: Lane>(x: Real<L>, factor: Real<L>) -> Real<L> {
        factor.eq(0.0).select(0.0, x * factor)
    }

    struct Forward;
    struct Backward;

    impl Lanewise<2, 0, 1> for Forward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, factor]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
            [dropped(x, factor)]
        }
    }

    impl Lanewise<2, 0, 1> for Backward {
        #[inline(always)]
        fn call<L: Lane>(&self, [factor, dy]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
            [dropped(dy, factor)]
        }
    }

    static INFO: Info = Info {
        name: "dropout",
        reals: Cow::Borrowed(&["self", "factors"]),
        differentiable: Cow::Borrowed(&[true, false]),
        masks: Cow::Borrowed(&[]),
        outputs: 1,
        keeps_reals: Cow::Borrowed(&[1]),
        keeps_masks: Cow::Borrowed(&[]),
        keeps_outputs: Cow::Borrowed(&[]),
        gradients: Cow::Borrowed(&[0]),
        reduction: Reduction::None,
    };
    static OP: Pair<Compiled<Forward, 2, 0, 1>, Compiled<Backward, 2, 0, 1>, Program> =
        Pair::new(&INFO, Compiled(Forward), Compiled(Backward), None);
    Handle::Static(&OP)
}

/// The mean of `d * d / 2` where the difference `d` is below 1, and of `|d| - 1 / 2` elsewhere.
pub(super) fn smooth_l1_loss<T: Float>() -> Handle<T> {
    #[derive(Clone, Copy)]
    struct Forward;

    impl Lanewise<2, 0, 1> for Forward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, target]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
            let difference = x - target;
            let distance = difference.abs();
            [distance.lt(1.0).select(difference.square() * 0.5, distance - 0.5)]
        }
    }

    static INFO: Info = info("smooth_l1_loss", false, Reduction::Mean(Cow::Borrowed(&[])));
    static OP: Pair<Compiled<Forward, 2, 0, 1>, Compiled<Derived<Forward>, 3, 0, 2>, Program> =
        Pair::new(&INFO, Compiled(Forward), Compiled(Derived(Forward)), None);
    Handle::Static(&OP)
}

/// The mean cross entropy of logits and probabilities: `(1 - t) softplus(x) + t softplus(-x)`, whose
/// derivative is `sigmoid(x) - t`. What has no weight counts nothing, also where it is infinite.
pub(super) fn binary_cross_entropy<T: Float>() -> Handle<T> {
    struct Forward;
    struct Backward;

    impl Lanewise<2, 0, 1> for Forward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, t]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
            let yes = t.eq(1.0).select(0.0, (1.0 - t) * x.max(0.0));
            let no = t.eq(0.0).select(0.0, t * (-x).max(0.0));
            [(-x.abs()).exp().ln_1p() + yes + no]
        }
    }

    impl Lanewise<3, 0, 2> for Backward {
        #[inline(always)]
        fn call<L: Lane>(&self, [x, t, dy]: [Real<L>; 3], _: [Mask<L>; 0]) -> [Real<L>; 2] {
            [dy * (x.sigmoid() - t), -(dy * x)]
        }
    }

    static INFO: Info = Info {
        reals: Cow::Borrowed(&["self", "targets"]),
        name: "binary_cross_entropy_with_logits",
        differentiable: Cow::Borrowed(&[true, true]),
        masks: Cow::Borrowed(&[]),
        outputs: 1,
        keeps_reals: Cow::Borrowed(&[0, 1]),
        keeps_masks: Cow::Borrowed(&[]),
        keeps_outputs: Cow::Borrowed(&[]),
        gradients: Cow::Borrowed(&[0]),
        reduction: Reduction::Mean(Cow::Borrowed(&[])),
    };
    static OP: Pair<Compiled<Forward, 2, 0, 1>, Compiled<Backward, 3, 0, 2>, Program> =
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
