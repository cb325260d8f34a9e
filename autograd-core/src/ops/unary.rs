//! Functions of one tensor, element by element: each an elementwise op like a user's.

use std::borrow::Cow;

use super::elementwise::{Cheap, Handle, Info, Op, Pair, Reduction};
use super::names::all_functions;
use super::table::forms::same_float;
use super::table::values::float;
use super::table::{OpDef, family};
use super::{Float, Input, Unary};
use crate::formula::{Compiled, Lane, Lanewise, Mask, Program, Real, named};
use crate::graph::Tensor;

/// What a rule reads besides the gradient, and the rule as a formula; see
/// [`functions`](crate::formula). The derivative of what is flat is 0, whatever gradient arrives.
macro_rules! rule {
    ({ flat }) => {
        rule! { { |_dy| Real::from(0.0) } }
    };
    ({ |$dy:ident| $dx:expr }) => {
        pub(super) const READS: (bool, bool) = (false, false);
        const GIVEN: usize = 1;

        impl Lanewise<1, 0, 1> for Backward {
            #[inline(always)]
            fn call<L: Lane>(&self, [$dy]: [Real<L>; 1], _: [Mask<L>; 0]) -> [Real<L>; 1] {
                [$dx]
            }
        }
    };
    ({ |$from:ident, $dy:ident| $dx:expr }) => {
        pub(super) const READS: (bool, bool) =
            (named!($from, true, false), named!($from, false, true));
        const GIVEN: usize = 2;

        impl Lanewise<2, 0, 1> for Backward {
            #[inline(always)]
            fn call<L: Lane>(&self, [$from, $dy]: [Real<L>; 2], _: [Mask<L>; 0]) -> [Real<L>; 1] {
                [$dx]
            }
        }
    };
}

/// The ops: formulas that are written here, and the functions of the table. What its rule names is
/// what an op keeps.
macro_rules! unary_ops {
    (
        [$(
            $(#[$own_doc:meta])*
            $own_method:ident $own_variant:ident |$own_x:ident| $own_y:expr, $own_rule:tt;
        )*]
        $($functions:tt)*
    ) => {
        unary_ops! {
            @of [$($(#[$own_doc])* $own_method $own_variant |$own_x| $own_y, $own_rule;)*]
            $($functions)*
        }
    };
    // One of formulas only.
    (
        @of [$($ops:tt)*]
        $(#[$doc:meta])*
        trunc Trunc $kernel:ident [$e32:literal, $e64:literal] $rule:tt;
        $($functions:tt)*
    ) => {
        unary_ops! { @of [$($ops)*] $($functions)* }
    };
    (
        @of [$($ops:tt)*]
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $rule:tt;
        $($functions:tt)*
    ) => {
        unary_ops! {
            @of [$($ops)* $(#[$doc])* $method $variant |x| x.$method(), $rule;]
            $($functions)*
        }
    };
    (@of [$($ops:tt)*]) => {
        unary_ops! { @ $($ops)* }
    };
    (@ $(
        $(#[$doc:meta])*
        $method:ident $variant:ident |$x:ident| $y:expr, $rule:tt;
    )*) => {
        impl Unary {
            /// The op that it is.
            pub(super) fn op<T: Float>(self) -> &'static dyn Op<T> {
                match self { $(Self::$variant => &$method::OP),* }
            }
        }

        $(
            mod $method {
                use super::*;

                pub(super) struct Forward;

                impl Lanewise<1, 0, 1> for Forward {
                    #[inline(always)]
                    fn call<L: Lane>(
                        &self,
                        [$x]: [Real<L>; 1],
                        _: [Mask<L>; 0],
                    ) -> [Real<L>; 1] {
                        [$y]
                    }
                }

                pub(super) struct Backward;

                rule! { $rule }

                pub(super) static OP: Pair<
                    Compiled<Forward, 1, 0, 1>,
                    Compiled<Backward, GIVEN, 0, 1>,
                    Program,
                > = Pair::cheap(&INFO, Compiled(Forward), Compiled(Backward), CHEAP);

                const CHEAP: Option<Cheap> = Unary::$variant.cheap();

                static INFO: Info = info(stringify!($method), READS);
            }
        )*

        /// # Functions of each element
        ///
        /// Each gives a tensor of the same shape. Angles are in radians.
        impl<T: Float> Tensor<T> {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $method(&self) -> Tensor<T> {
                    T::unary(Unary::$variant, Input::Ref(self), std::panic::Location::caller())
                }
            )*
        }
    };
}

impl<T: Float> Tensor<T> {
    /// The natural logarithm: [`Tensor::ln`] under its name in NumPy, PyTorch and Paddle.
    #[track_caller]
    pub fn log(&self) -> Tensor<T> {
        self.ln()
    }
}

family! {
    /// Functions of each element: all of eager mode.
    FUNCTIONS of Unary::ALL => OpDef {
        family: "unary",
        infer: same_float,
        run: |op, x, at| float!(x, x => Ok(Float::unary(Unary::ALL[op.def.index], Input::Own(x), at))),
        ..OpDef::new("")
    }
}

const fn info(name: &'static str, (input, output): (bool, bool)) -> Info {
    Info {
        name,
        reals: Cow::Borrowed(&["x"]),
        differentiable: Cow::Borrowed(&[true]),
        masks: Cow::Borrowed(&[]),
        outputs: 1,
        keeps_reals: Cow::Borrowed(if input { &[0] } else { &[] }),
        keeps_masks: Cow::Borrowed(&[]),
        keeps_outputs: Cow::Borrowed(if output { &[0] } else { &[] }),
        gradients: Cow::Borrowed(&[0]),
        reduction: Reduction::None,
    }
}

impl Unary {
    pub(crate) fn handle<T: Float>(self) -> Handle<T> {
        Handle::Static(self.op())
    }

    /// Which of the cheap functions it is.
    const fn cheap(self) -> Option<Cheap> {
        match self {
            Self::Neg => Some(Cheap::Neg),
            Self::Square => Some(Cheap::Square),
            Self::Relu => Some(Cheap::Relu),
            _ => None,
        }
    }
}

all_functions! { unary_ops }

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn great_angles_are_reduced_exactly() {
        for n in [3, 100] {
            let angles: Vec<f64> = (0..n).map(|i| 1e9 + 1e7 * i as f64).collect();
            let x = Tensor::from(angles.clone());
            x.set_stop_gradient(false);
            let y = x.sin();
            assert_eq!(y.to_vec(), angles.iter().map(|a| a.sin()).collect::<Vec<_>>());
            y.sum().backward().unwrap();
            let dx = x.grad().unwrap();
            assert_eq!(dx.to_vec(), angles.iter().map(|a| a.cos()).collect::<Vec<_>>());
        }
    }
}
