//! The functions of two numbers as elementwise ops: of two tensors, and of a tensor and a number.

use super::elementwise::{ElementwiseOp, Info, Pair, Reduction, pulled};
use super::{Arithmetic, Binary, Float};
use crate::formula::{Compiled, Dual, Lane, Lanewise, Mask, Program, Real, binaries, table};

/// The gradients of `a` and `b`, from `a`, `b` and the gradient of the result.
struct Gradients<F>(F);

impl<F: Lanewise<2, 0, 1>> Lanewise<3, 0, 2> for Gradients<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [a, b, dy]: [Real<L>; 3], _: [Mask<L>; 0]) -> [Real<L>; 2] {
        let along = |a, b| self.0.call::<Dual<L>>([a, b], []);
        let of_a = along(Real::moving(a, 1.0), Real::constant(b));
        let of_b = along(Real::constant(a), Real::moving(b, 1.0));
        [pulled(&of_a, &[dy]), pulled(&of_b, &[dy])]
    }
}

/// The function of `x` and a number, or, if swapped, of a number and `x`.
struct WithNumber<F, const SWAPPED: bool>(F);

impl<F: Lanewise<2, 0, 1>, const SWAPPED: bool> Lanewise<2, 0, 1> for WithNumber<F, SWAPPED> {
    #[inline(always)]
    fn call<L: Lane>(&self, [x, number]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
        self.0.call(if SWAPPED { [number, x] } else { [x, number] }, [])
    }
}

/// The gradient of `x`, from `x`, the number and the gradient of the result.
struct GradientWithNumber<F>(F);

impl<F: Lanewise<2, 0, 1>> Lanewise<3, 0, 1> for GradientWithNumber<F> {
    #[inline(always)]
    fn call<L: Lane>(&self, [x, number, dy]: [Real<L>; 3], _: [Mask<L>; 0]) -> [Real<L>; 1] {
        let y = self.0.call::<Dual<L>>([Real::moving(x, 1.0), Real::literal(number)], []);
        [pulled(&y, &[dy])]
    }
}

const fn info(name: &'static str, differentiable: &'static [bool; 2]) -> Info {
    Info::new(name, &["x", "other"], differentiable, [&[0, 1], &[]], Reduction::None)
}

type WithNumberOp<F, const SWAPPED: bool> = Pair<
    Compiled<WithNumber<F, SWAPPED>, 2, 0, 1>,
    Compiled<GradientWithNumber<WithNumber<F, SWAPPED>>, 3, 0, 1>,
    Program,
>;

const fn with_number<F: Copy, const SWAPPED: bool>(
    info: &'static Info,
    of: F,
) -> WithNumberOp<F, SWAPPED> {
    let backward = GradientWithNumber(WithNumber(of));
    Pair::new(info, Compiled(WithNumber(of)), Compiled(backward), None)
}

macro_rules! ops {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        $(
            mod $name {
                use super::*;
                use table::$variant as Function;

                static INFO: Info = info(stringify!($name), &[true, true]);
                pub(super) static OP: Pair<
                    Compiled<Function, 2, 0, 1>,
                    Compiled<Gradients<Function>, 3, 0, 2>,
                    Program,
                > = Pair::new(&INFO, Compiled(Function), Compiled(Gradients(Function)), None);

                static OF_NUMBER: Info = info(stringify!($name), &[true, false]);
                pub(super) static RIGHT: WithNumberOp<Function, false> =
                    with_number(&OF_NUMBER, Function);
                pub(super) static LEFT: WithNumberOp<Function, true> =
                    with_number(&OF_NUMBER, Function);
            }
        )*

        pub(super) fn of_two<T: Float>(op: Binary) -> &'static dyn ElementwiseOp<T> {
            match op { $(Binary::$variant => &$name::OP),* }
        }

        /// The op of a tensor and a number, which is on the left if `swapped`.
        pub(super) fn of_number<T: Float>(
            op: Binary,
            swapped: bool,
        ) -> &'static dyn ElementwiseOp<T> {
            match (op, swapped) {
                $(
                    (Binary::$variant, false) => &$name::RIGHT,
                    (Binary::$variant, true) => &$name::LEFT,
                )*
            }
        }
    };
}

binaries! { ops }

pub(super) fn of_integers<T: Arithmetic>(op: Binary) -> fn(T, T) -> T {
    match op {
        Binary::Add => T::plus,
        Binary::Sub => T::minus,
        Binary::Mul => T::times,
        Binary::Div => T::over,
        Binary::Max => T::greater,
        Binary::Min => T::lesser,
        _ => unreachable!("`{}` is for floats only", op.name()),
    }
}
