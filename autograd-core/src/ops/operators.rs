//! `+ - * /` between tensors, references and scalars, and their named forms.

use std::ops::{Add, BitXor, Div, Mul, Neg, Sub};
use std::panic::Location;

use super::binary::check_divisor;
use super::{Binary, Caller, Float, Input, Numeric, Operand, Unary, expect};
use crate::array::Value;
use crate::error::Result;
use crate::formula::Exponent;
use crate::graph::{Scalar, Tensor};

impl<T: Numeric> Operand<T> for Tensor<T> {
    fn operate(self, op: Binary, left: Input<'_, T>, caller: Caller) -> Result<Tensor<T>> {
        T::binary(op, left, Input::Own(self), caller)
    }

    fn lend<R>(self, see: impl FnOnce(&Tensor<T>) -> R) -> R {
        see(&self)
    }
}

impl<T: Numeric> Operand<T> for &Tensor<T> {
    fn operate(self, op: Binary, left: Input<'_, T>, caller: Caller) -> Result<Tensor<T>> {
        T::binary(op, left, Input::Ref(self), caller)
    }

    fn lend<R>(self, see: impl FnOnce(&Tensor<T>) -> R) -> R {
        see(self)
    }
}

impl<T: Float> Scalar<T> for f64 {
    fn scalar(self) -> T {
        T::from_f64(self)
    }
}

impl<T: Float> Operand<T> for f64 {
    fn operate(self, op: Binary, left: Input<'_, T>, caller: Caller) -> Result<Tensor<T>> {
        Ok(T::binary_scalar(op, left, self.scalar(), false, caller))
    }

    fn lend<R>(self, see: impl FnOnce(&Tensor<T>) -> R) -> R {
        see(&Tensor::from(Scalar::<T>::scalar(self)))
    }
}

macro_rules! scalars {
    ($($t:ty => $($element:ty)*;)*) => {$($(
        impl Scalar<$element> for $t {
            fn scalar(self) -> $element {
                self as $element
            }
        }

        impl Operand<$element> for $t {
            fn operate(
                self,
                op: Binary,
                left: Input<'_, $element>,
                caller: Caller,
            ) -> Result<Tensor<$element>> {
                let scalar: $element = self.scalar();
                check_divisor(op, &Value::scalar(scalar))?;
                Ok(<$element as Numeric>::binary_scalar(op, left, scalar, false, caller))
            }

            fn lend<R>(self, see: impl FnOnce(&Tensor<$element>) -> R) -> R {
                see(&Tensor::from(Scalar::<$element>::scalar(self)))
            }
        }
    )*)*};
}

scalars! {
    f32 => f32;
    i32 => i32 f32 f64;
    i64 => i64;
    u8 => u8;
}

macro_rules! borrowed_operands {
    ($($scalar:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Numeric> Operand<T> for &$scalar
        where
            $scalar: Operand<T>,
        {
            fn operate(self, op: Binary, left: Input<'_, T>, caller: Caller) -> Result<Tensor<T>> {
                (*self).operate(op, left, caller)
            }

            fn lend<R>(self, see: impl FnOnce(&Tensor<T>) -> R) -> R {
                (*self).lend(see)
            }
        }
    )*};
}

borrowed_operands! { f64 f32 i32 i64 u8 }

impl Scalar<bool> for bool {
    fn scalar(self) -> bool {
        self
    }
}

macro_rules! scalar_on_the_left {
    ($trait:ident $method:ident $op:ident $of:tt $scalar:ty => $t:ty, |$s:ident| $convert:expr;) => {
        scalar_on_the_left! { Own Tensor<$t>; $trait $method $op $of $scalar => $t, |$s| $convert }
        scalar_on_the_left! { Ref &Tensor<$t>; $trait $method $op $of $scalar => $t, |$s| $convert }
    };
    (
        $input:ident $right:ty; $trait:ident $method:ident $op:ident [$($of:tt)*]
        $scalar:ty => $t:ty, |$s:ident| $convert:expr
    ) => {
        impl<$($of)*> $trait<$right> for $scalar {
            type Output = Tensor<$t>;

            #[track_caller]
            fn $method(self, right: $right) -> Tensor<$t> {
                let $s = self;
                expect(check_divisor(Binary::$op, &right.read()));
                let right = Input::$input(right);
                <$t>::binary_scalar(Binary::$op, right, $convert, true, Location::caller())
            }
        }

        impl<$($of)*> $trait<$right> for &$scalar {
            type Output = Tensor<$t>;

            #[track_caller]
            fn $method(self, right: $right) -> Tensor<$t> {
                (*self).$method(right)
            }
        }
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<T: Numeric, R: Operand<T>> $trait<R> for Tensor<T> {
            type Output = Tensor<T>;

            #[track_caller]
            fn $method(self, right: R) -> Tensor<T> {
                expect(right.operate(Binary::$op, Input::Own(self), Location::caller()))
            }
        }

        impl<T: Numeric, R: Operand<T>> $trait<R> for &Tensor<T> {
            type Output = Tensor<T>;

            #[track_caller]
            fn $method(self, right: R) -> Tensor<T> {
                expect(right.operate(Binary::$op, Input::Ref(self), Location::caller()))
            }
        }

        scalar_on_the_left! { $trait $method $op [T: Float] f64 => T, |s| T::from_f64(s); }
        scalar_on_the_left! { $trait $method $op [T: Float] i32 => T, |s| T::from_f64(f64::from(s)); }
        scalar_on_the_left! { $trait $method $op [] i32 => i32, |s| s; }
        scalar_on_the_left! { $trait $method $op [] i64 => i64, |s| s; }
        scalar_on_the_left! { $trait $method $op [] u8 => u8, |s| s; }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

macro_rules! no_power {
    ($($left:ty)*) => {$(
        // Only for its message.
        #[doc(hidden)]
        impl<T: Numeric, R: Exponent> BitXor<R> for $left {
            type Output = Tensor<T>;

            fn bitxor(self, _: R) -> Tensor<T> {
                unreachable!("nothing implements the bound")
            }
        }
    )*};
}

no_power! { Tensor<T> &Tensor<T> }

impl<T: Float> Neg for Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn neg(self) -> Tensor<T> {
        T::unary(Unary::Neg, Input::Own(self), Location::caller())
    }
}

impl<T: Float> Neg for &Tensor<T> {
    type Output = Tensor<T>;

    #[track_caller]
    fn neg(self) -> Tensor<T> {
        T::unary(Unary::Neg, Input::Ref(self), Location::caller())
    }
}

macro_rules! named {
    ($($try_method:ident $op:ident $symbol:literal $($more:literal)?;)*) => {
        /// # Operators as methods that return errors
        ///
        /// `a + b` panics if the shapes cannot be broadcast together; these methods return the error.
        impl<T: Numeric> Tensor<T> {
            $(
                #[doc = concat!("`self ", $symbol, " other`, element by element; the shapes broadcast.")]
                $(#[doc = $more])?
                ///
                /// ```
                /// use autograd_core::Tensor;
                ///
                /// let x = Tensor::from([6.0, 8.0]);
                #[doc = concat!("assert_eq!(x.", stringify!($try_method), "(2.0)?.to_vec(), (&x ", $symbol, " 2.0).to_vec());")]
                #[doc = concat!("assert!(x.", stringify!($try_method), "(&Tensor::from([1.0, 2.0, 3.0])).is_err());")]
                /// # Ok::<(), autograd_core::Error>(())
                /// ```
                ///
                /// # Errors
                ///
                /// [`Error::Broadcast`](crate::Error::Broadcast) if the shapes do not broadcast.
                #[track_caller]
                pub fn $try_method(&self, other: impl Operand<T>) -> Result<Tensor<T>> {
                    other.operate(Binary::$op, Input::Ref(self), Location::caller())
                }
            )*
        }
    };
}

named! {
    try_add Add "+";
    try_sub Sub "-";
    try_mul Mul "*";
    try_div Div "/" "Integers round toward zero; dividing one by 0 is an [`Error::Value`](crate::Error::Value).";
}
