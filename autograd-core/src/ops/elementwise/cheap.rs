//! Functions as cheap as arithmetic: of large tensors they are deferred until the result is read.

use crate::array::Step;

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
    pub(super) fn forward<T>(self) -> Step<T> {
        match self {
            Self::Neg => Step::Neg,
            Self::Square => Step::Square,
            Self::Relu => Step::Relu,
        }
    }

    /// Of what backward reads, where the gradient of every output is the same.
    pub(super) fn backward<T>(self, dy: T) -> Option<Step<T>> {
        match self {
            Self::Neg => None,
            Self::Square => Some(Step::SquareGrad(dy)),
            Self::Relu => Some(Step::ReluGrad(dy)),
        }
    }
}
