//! The functions of the tables as formulas: the loops of an op, and of a program's step.

use super::compiled::{Compiled, Lanewise};
use super::functions::{binaries, functions};
use super::lane::Lane;
use super::pass::Formula;
use super::program::{Binary, Function};
use super::real::{Mask, Real};
use crate::array::math::{ANGLE_MAX, Math};
use crate::array::{Cheap, Storable};

macro_rules! formula {
    ($function:ident $inputs:literal |$($x:ident),*| $y:expr, $cheap:expr) => {
        #[derive(Clone, Copy)]
        pub struct $function;

        impl Lanewise<$inputs, 0, 1> for $function {
            const CHEAP: Option<Cheap> = $cheap;

            #[inline(always)]
            fn call<L: Lane>(
                &self,
                [$($x),*]: [Real<L>; $inputs],
                _: [Mask<L>; 0],
            ) -> [Real<L>; 1] {
                [Real($y)]
            }
        }
    };
}

macro_rules! one_number {
    ($($(#[$doc:meta])* $method:ident $variant:ident $kernel:ident $error:tt $slope:tt;)*) => {
        formula! { Neg 1 |x| x.0.neg(), Some(Cheap::Neg) }
        $(formula! { $variant 1 |x| x.0.$method(), None })*

        impl Function {
            pub(super) fn formula<T: Storable + Math>(self) -> &'static dyn Formula<T> {
                match self {
                    Self::Neg => &Compiled(Neg),
                    $(Self::$variant => &Compiled($variant),)*
                }
            }

            /// Computes the elements whose angles are beyond what the loop takes. Only these, so that no
            /// figure depends on its neighbours.
            pub(super) fn of_large_angles<T: Math>(self, x: &[T], to: &mut [T]) {
                let large: fn(T) -> T = match self {
                    Self::Sin => T::sin,
                    Self::Cos => T::cos,
                    _ => T::tan,
                };
                let pairs = to.iter_mut().zip(x);
                let pairs = pairs.filter(|(_, x)| x.abs() > T::lit(ANGLE_MAX));
                pairs.for_each(|(to, x)| *to = large(*x));
            }
        }
    };
}

functions! { one_number }

macro_rules! two_numbers {
    ($(
        $(#[$doc:meta])*
        $number:ident $binary:ident $name:ident $error:tt |$a:ident, $b:ident| $value:expr, $rule:tt;
    )*) => {
        $(formula! { $binary 2 |a, b| a.0.$number(b.0), Binary::$binary.cheap() })*

        impl Binary {
            pub(super) fn formula<T: Storable + Math>(self) -> &'static dyn Formula<T> {
                match self {
                    $(Self::$binary => &Compiled($binary),)*
                }
            }

            const fn cheap(self) -> Option<Cheap> {
                match self {
                    Self::Add => Some(Cheap::Add),
                    Self::Sub => Some(Cheap::Sub),
                    Self::Mul => Some(Cheap::Mul),
                    Self::Div => Some(Cheap::Div),
                    Self::Min => Some(Cheap::Min),
                    Self::Max => Some(Cheap::Max),
                    _ => None,
                }
            }
        }
    };
}

binaries! { two_numbers }
