//! The loops of a program's steps.

use super::functions::functions;
use super::program::{Binary, Compare, Function};
use crate::array::Cheap;
use crate::array::math::{ANGLE_MAX, Math, angles_in_range, select};
use crate::array::simd::Kernel;

macro_rules! function_kernel {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        pub(super) struct FunctionKernel<'a, T>(
            pub(super) Function,
            pub(super) &'a [T],
            pub(super) &'a mut [T],
        );

        impl<T: Math> Kernel for FunctionKernel<'_, T> {
            type Output = ();

            #[inline(always)]
            fn run<const FMA: bool>(self) {
                let Self(function, x, to) = self;
                let pairs = to.iter_mut().zip(x);
                match function {
                    Function::Neg => pairs.for_each(|(to, x)| *to = -*x),
                    $(Function::$variant => {
                        for (to, x) in pairs {
                            *to = x.$kernel::<FMA>();
                        }
                    })*
                }
                // Only these, so that no figure depends on its neighbours.
                let large: Option<fn(T) -> T> = match function {
                    Function::Sin => Some(T::sin),
                    Function::Cos => Some(T::cos),
                    Function::Tan => Some(T::tan),
                    _ => None,
                };
                if let Some(large) = large.filter(|_| !angles_in_range(x)) {
                    let pairs = to.iter_mut().zip(x);
                    let pairs = pairs.filter(|(_, x)| x.abs() > T::lit(ANGLE_MAX));
                    pairs.for_each(|(to, x)| *to = large(*x));
                }
            }
        }
    };
}

functions! { function_kernel }

/// Kernels of operands and what is written.
macro_rules! kernels {
    ($($kernel:ident($($operand:ty),*) |$($name:ident),*| $run:block)*) => {$(
        pub(super) struct $kernel<'a, T>($(pub(super) $operand),*);

        impl<T: Math> Kernel for $kernel<'_, T> {
            type Output = ();

            #[inline(always)]
            fn run<const FMA: bool>(self) {
                let Self($($name),*) = self;
                $run
            }
        }
    )*};
}

kernels! {
    BinaryKernel(Binary, &'a [T], &'a [T], &'a mut [T]) |function, a, b, to| {
        macro_rules! each {
            (|$a:ident, $b:ident| $body:expr) => {
                for ((to, &$a), &$b) in to.iter_mut().zip(a).zip(b) {
                    *to = $body;
                }
            };
        }
        match function {
            Binary::Add => each!(|a, b| a + b),
            Binary::Sub => each!(|a, b| a - b),
            Binary::Mul => each!(|a, b| a * b),
            Binary::Div => each!(|a, b| a / b),
            Binary::Min => each!(|a, b| a.v_min::<FMA>(b)),
            Binary::Max => each!(|a, b| a.v_max::<FMA>(b)),
            Binary::Pow => each!(|a, b| a.v_pow::<FMA>(b)),
        }
    }

    // Two operands of an operator, of which `to` is operand `k`.
    OverKernel(Cheap, usize, &'a mut [T], &'a [T]) |function, k, to, other| {
        macro_rules! each {
            ($op:tt) => {
                match k {
                    0 => to.iter_mut().zip(other).for_each(|(x, &other)| *x = *x $op other),
                    _ => to.iter_mut().zip(other).for_each(|(x, &other)| *x = other $op *x),
                }
            };
        }
        match function {
            Cheap::Add => each!(+),
            Cheap::Sub => each!(-),
            Cheap::Mul => each!(*),
            Cheap::Div => each!(/),
            _ => unreachable!("it is no operator"),
        }
    }

    MulAddKernel(&'a [T], &'a [T], &'a [T], &'a mut [T]) |a, b, c, to| {
        for (((to, a), &b), &c) in to.iter_mut().zip(a).zip(b).zip(c) {
            *to = a.fma::<FMA>(b, c);
        }
    }

    CompareKernel(Compare, &'a [T], &'a [T], &'a mut [bool]) |compare, a, b, to| {
        macro_rules! each {
            ($method:ident) => {
                for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
                    *to = a.$method(b);
                }
            };
        }
        match compare {
            Compare::Less => each!(lt),
            Compare::LessOrEqual => each!(le),
            Compare::Equal => each!(eq),
        }
    }

    SelectKernel(&'a [bool], &'a [T], &'a [T], &'a mut [T]) |mask, a, b, to| {
        for (((to, &m), &a), &b) in to.iter_mut().zip(mask).zip(a).zip(b) {
            *to = select(m, a, b);
        }
    }
}
