//! Elementwise functions of one tensor: each is an elementwise op like a user's.

use std::panic::Location;

use super::elementwise::{ElementwiseOp, Handle, Info, Pair, Reduction, formulas};
use super::names::{all_functions, joined_functions};
use super::table::{OpDef, family, float, for_programs, same_float};
use super::{Binary, Float, Input, Unary};
use crate::array::Cheap;
use crate::formula::{Compiled, Lane, Program, Real, named};
use crate::graph::{Scalar, Tensor};

/// Defines what a rule reads besides the gradient, and the rule as a formula; see
/// [`functions`](crate::formula). The derivative of a flat function is 0, whatever the gradient.
macro_rules! rule {
    ($variant:ident { flat }) => {
        rule! { $variant { |_dy| Real::from(0.0) } }
    };
    ($variant:ident { |$dy:ident| $dx:expr }) => {
        pub(super) const READS: [bool; 2] = [false, false];
        const GIVEN: usize = 1;
        formulas! { Backward |$dy| [$dx], Unary::$variant.cheap()[1]; }
    };
    ($variant:ident { |$from:ident, $dy:ident| $dx:expr }) => {
        pub(super) const READS: [bool; 2] =
            [named!($from, true, false), named!($from, false, true)];
        const GIVEN: usize = 2;
        formulas! { Backward |$from, $dy| [$dx], Unary::$variant.cheap()[1]; }
    };
}

/// The formula of the result: that of the table of formulas, or one that is written here.
macro_rules! forward {
    ($variant:ident table) => {
        use crate::formula::table::$variant as Forward;
    };
    ($variant:ident { |$x:ident| $y:expr }) => {
        formulas! { Forward |$x| [$y], Unary::$variant.cheap()[0]; }
    };
}

/// The gradient by a rule, as text.
macro_rules! gradient {
    ({ flat }) => {
        "0"
    };
    ({ |$dy:ident| $dx:expr }) => {
        stringify!($dx)
    };
    ({ |$from:ident, $dy:ident| $dx:expr }) => {
        stringify!($dx)
    };
}

macro_rules! unary_ops {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $formula:tt, $rule:tt;
    )*) => {
        impl Unary {
            pub(crate) fn op<T: Float>(self) -> &'static dyn ElementwiseOp<T> {
                match self { $(Self::$variant => &$method::OP),* }
            }
        }

        $(
            mod $method {
                use super::*;

                forward! { $variant $formula }
                rule! { $variant $rule }

                pub(super) static OP: Pair<
                    Compiled<Forward, 1, 0, 1>,
                    Compiled<Backward, GIVEN, 0, 1>,
                    Program,
                > = Pair::new(&INFO, Compiled(Forward), Compiled(Backward), None);

                static INFO: Info = info(stringify!($method), READS);
            }
        )*

        /// # Functions of each element
        ///
        /// Each returns a tensor of the same shape. Angles are in radians. The error of a gradient in `f32` is the largest
        /// difference from the derivative, as a part of the larger of `|f'|` and `|f| / max(1, |x|)`, at all 2^32 numbers
        /// but those where value or derivative is not finite.
        impl<T: Float> Tensor<T> {
            $(
                $(#[$doc])*
                ///
                #[doc = concat!("With `y` for the result, the gradient is `", gradient!($rule), "`.")]
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let x = Tensor::from([0.25, 0.75]);
                /// x.set_stop_gradient(false);
                #[doc = concat!("x.", stringify!($method), "().sum().backward()?;")]
                /// let h = 1e-5;
                #[doc = concat!("let slope = ((&x + h).", stringify!($method), "() - (&x - h).", stringify!($method), "()) / (2.0 * h);")]
                /// assert!(x.try_grad()?.allclose(&slope, 1e-8, 1e-8));
                /// # Ok::<(), autograd_core::Error>(())
                /// ```
                #[track_caller]
                pub fn $method(&self) -> Tensor<T> {
                    T::unary(Unary::$variant, Input::Ref(self), std::panic::Location::caller())
                }
            )*
        }
    };
}

/// # Limits and other names
impl<T: Float> Tensor<T> {
    /// Returns the natural logarithm of each element: [`Tensor::ln`] under its name in NumPy, PyTorch and Paddle.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// assert_eq!(Tensor::from([1.0]).log().item(), 0.0);
    /// ```
    #[track_caller]
    pub fn log(&self) -> Tensor<T> {
        self.ln()
    }

    /// Limits elements to `[low, high]`. The gradient is 0 outside, and passes at the bounds and for NaN.
    ///
    /// ```
    /// use autograd_core::Tensor;
    ///
    /// let x = Tensor::from([-2.0, 0.5, 3.0]);
    /// assert_eq!(x.clamp(0.0, 1.0).to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `low > high` or either is NaN.
    #[doc(alias = "clip")]
    #[track_caller]
    pub fn clamp(&self, low: impl Scalar<T>, high: impl Scalar<T>) -> Tensor<T> {
        let (low, high) = (low.scalar(), high.scalar());
        for (name, bound) in [("low", low), ("high", high)] {
            assert!(!bound.is_nan(), "clamp: `{name}` must not be NaN");
        }
        assert!(low <= high, "clamp: `low` must not be above `high`, found {low:?} and {high:?}");
        let limited =
            T::binary_scalar(Binary::Max, Input::Ref(self), low, false, Location::caller());
        T::binary_scalar(Binary::Min, Input::Own(limited), high, false, Location::caller())
    }
}

family! {
    FUNCTIONS of Unary::ALL => OpDef {
        family: "unary",
        infer: for_programs(same_float),
        run: |op, x, at| float!(x, x => Ok(Float::unary(Unary::ALL[op.def.index], Input::Own(x), at))),
        ..OpDef::new("")
    }
}

/// The op of `x.pow(2.0)` or `x.pow(3.0)`: products, which are faster than a power.
pub(super) fn small_power<T: Float>(exponent: T) -> Option<Handle<T>> {
    use square::{Backward as SquareGradient, Forward as Square, READS};

    formulas! {
        Cube |x| [x * x * x];
        CubeGradient |x, dy| [dy * (x * x) * 3.0];
    }

    static INFO: Info = info("pow", READS);
    static SQUARE: Pair<Compiled<Square, 1, 0, 1>, Compiled<SquareGradient, 2, 0, 1>, Program> =
        Pair::new(&INFO, Compiled(Square), Compiled(SquareGradient), None);
    static CUBE: Pair<Compiled<Cube, 1, 0, 1>, Compiled<CubeGradient, 2, 0, 1>, Program> =
        Pair::new(&INFO, Compiled(Cube), Compiled(CubeGradient), None);
    match exponent.into_f64() {
        2.0 => Some(Handle::Static(&SQUARE)),
        3.0 => Some(Handle::Static(&CUBE)),
        _ => None,
    }
}

const fn info(name: &'static str, reads: [bool; 2]) -> Info {
    let keeps: [&'static [usize]; 2] = match reads {
        [true, _] => [&[0], &[]],
        [_, true] => [&[], &[0]],
        _ => [&[], &[]],
    };
    Info::new(name, &["x"], &[true], keeps, Reduction::None)
}

impl Unary {
    /// Returns the cheap functions that equal this function and its rule, if any.
    const fn cheap(self) -> [Option<Cheap>; 2] {
        match self {
            Self::Neg => [Some(Cheap::Neg), Some(Cheap::Neg)],
            Self::Square => [Some(Cheap::Square), Some(Cheap::SquareGrad)],
            Self::Relu => [Some(Cheap::Relu), Some(Cheap::ReluGrad)],
            _ => [None, None],
        }
    }
}

all_functions! { unary_ops }
