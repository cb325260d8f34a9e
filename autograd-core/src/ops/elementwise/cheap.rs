//! Functions as cheap as arithmetic: of large tensors they are put off until somebody reads the result.

use super::Float;
use crate::array::deferred::Step;
use crate::array::elementwise::Zip;

/// Which function.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Cheap {
    Neg,
    Square,
    Relu,
}

impl Cheap {
    /// Of the input.
    pub(super) fn forward<T: Float>(self) -> Step<T> {
        let scalar = T::ZERO;
        match self {
            Self::Neg => Step { f: &Neg, scalar },
            Self::Square => Step { f: &Square, scalar },
            Self::Relu => Step { f: &Relu, scalar },
        }
    }

    /// Of what backward reads, where the gradient of every output is the same.
    pub(super) fn backward<T: Float>(self, dy: T) -> Option<Step<T>> {
        match self {
            Self::Neg => None,
            Self::Square => Some(Step { f: &SquareGrad, scalar: dy }),
            Self::Relu => Some(Step { f: &ReluGrad, scalar: dy }),
        }
    }
}

macro_rules! steps {
    ($($name:ident |$x:ident, $dy:tt| $y:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;

        impl<T: Float> Zip<T> for $name {
            const ARITHMETIC: bool = true;

            #[inline(always)]
            fn call<const FMA: bool>(self, $x: T, $dy: T) -> T {
                $y
            }
        }
    )*};
}

// To the last bit what the formulas of `unary` give.
steps! {
    Neg |x, _| -x;
    Square |x, _| x * x;
    Relu |x, _| if x < T::ZERO { T::ZERO } else { x };
    SquareGrad |x, dy| dy * x * (T::ONE + T::ONE);
    ReluGrad |y, dy| dy * if y > T::ZERO { T::ONE } else { T::ZERO };
}
