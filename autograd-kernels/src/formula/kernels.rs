//! The loops of a program's steps.

use super::functions::{functions, pairs};
use super::program::{Binary, Compare, Function, Step};
use crate::array::math::{ANGLE_MAX, Math, angles_in_range, select};
use crate::array::simd::Kernel;

/// A step over a block.
pub(super) struct StepKernel<'a, T> {
    pub(super) step: Step,
    /// The operands, each at its place in one of the two.
    pub(super) numbers: [&'a [T]; 3],
    pub(super) masks: [&'a [bool]; 3],
    /// Where the result goes, one of the two.
    pub(super) to: &'a mut [T],
    pub(super) to_mask: &'a mut [bool],
}

impl<T: Math> Kernel for StepKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { step, numbers: [x, y, z], masks: [l, r, _], to, to_mask } = self;
        match step {
            Step::Function(f, _) => function::<T, FMA>(f, x, to),
            Step::Binary(f, ..) => binary::<T, FMA>(f, x, y, to),
            Step::Compare(f, ..) => compare(f, x, y, to_mask),
            Step::MulAdd(..) => {
                for (((to, x), &y), &z) in to.iter_mut().zip(x).zip(y).zip(z) {
                    *to = x.fma::<FMA>(y, z);
                }
            }
            Step::Select(..) => {
                for (((to, &l), &y), &z) in to.iter_mut().zip(l).zip(y).zip(z) {
                    *to = select(l, y, z);
                }
            }
            Step::Not(_) => to_mask.iter_mut().zip(l).for_each(|(to, l)| *to = !l),
            Step::And(..) => {
                to_mask.iter_mut().zip(l).zip(r).for_each(|((to, l), r)| *to = l & r);
            }
            Step::Or(..) => {
                to_mask.iter_mut().zip(l).zip(r).for_each(|((to, l), r)| *to = l | r);
            }
            Step::Real(_) | Step::Mask(_) | Step::Lit(_) | Step::Known(_) => {}
        }
    }
}

macro_rules! one_number {
    ($(
        $(#[$doc:meta])*
        $method:ident $variant:ident $kernel:ident [$e32:literal, $e64:literal] $slope:tt;
    )*) => {
        #[inline(always)]
        fn function<T: Math, const FMA: bool>(function: Function, x: &[T], to: &mut [T]) {
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
    };
}

macro_rules! two_numbers {
    (
        numbers { $($number:ident $binary:ident |$a:ident, $b:ident| $value:expr;)* }
        conditions { $($condition:ident $compare:ident |$c:ident, $d:ident| $holds:expr;)* }
    ) => {
        #[inline(always)]
        fn binary<T: Math, const FMA: bool>(f: Binary, x: &[T], y: &[T], to: &mut [T]) {
            let pairs = to.iter_mut().zip(x).zip(y);
            match f {
                $(Binary::$binary => {
                    for ((to, &$a), &$b) in pairs {
                        *to = $value;
                    }
                })*
            }
        }

        #[inline(always)]
        fn compare<T: Math>(f: Compare, x: &[T], y: &[T], to: &mut [bool]) {
            let pairs = to.iter_mut().zip(x).zip(y);
            match f {
                $(Compare::$compare => {
                    for ((to, $c), $d) in pairs {
                        *to = $holds;
                    }
                })*
            }
        }
    };
}

functions! { one_number }
pairs! { two_numbers }
