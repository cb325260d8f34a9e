//! The loops of a program's steps that are no functions of a table.

use super::program::Compare;
use crate::array::math::{Math, select};
use crate::array::simd::Kernel;

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
