//! Gradients of an elementwise op that are one op of what backward reads, such as `dy * b`: no formula runs.

use super::compute::CallShapes;
use crate::error::Result;
use crate::formula::SingleStep;
use crate::graph::{Pull, Push, SavedReader, Slots, Tensor, typed};
use crate::ops::{Binary, Caller, Float, Input, Unary, add_parts};

/// How a gradient follows from `dy` by one op at most.
#[derive(Clone, Copy)]
pub(super) enum FromGradient {
    Same,
    Negated,
    /// With a saved number or tensor, which is on the left if `swapped`.
    Binary {
        function: Binary,
        place: usize,
        swapped: bool,
    },
}

impl FromGradient {
    /// `dy` is the input of backward behind those that are `kept`.
    pub(super) fn of(step: SingleStep, kept: usize) -> Option<Self> {
        match step {
            SingleStep::Input(at) => (at == kept).then_some(Self::Same),
            SingleStep::Negated(at) => (at == kept).then_some(Self::Negated),
            SingleStep::Binary(function, [left, right]) => {
                let (place, swapped) = match [left == kept, right == kept] {
                    [true, false] => (right, false),
                    [false, true] => (left, true),
                    // A rule that a user wrote need not be linear in `dy`.
                    _ => return None,
                };
                Some(Self::Binary { function, place, swapped })
            }
        }
    }

    #[inline(always)]
    fn run<T: Float>(
        self,
        dy: Input<'_, T>,
        saved: &SavedReader<'_>,
        caller: Caller,
    ) -> Result<Tensor<T>> {
        match self {
            Self::Same => Ok(dy.into_tensor()),
            Self::Negated => Ok(T::unary(Unary::Neg, dy, caller)),
            Self::Binary { function, place, swapped } => {
                if let Some(number) = saved.peek_number(place).map(T::from_f64) {
                    return Ok(T::binary_scalar(function, dy, number, swapped, caller));
                }
                let Some(x) = saved.peek(place)? else { unreachable!("the rule reads it") };
                let [a, b] = if swapped { [Input::Ref(x), dy] } else { [dy, Input::Ref(x)] };
                T::binary(function, a, b, caller)
            }
        }
    }

    /// Runs it, and delivers the gradient of input `i`.
    pub(super) fn deliver<T: Float>(
        self,
        i: usize,
        dy: Input<'_, T>,
        saved: &SavedReader<'_>,
        pull: &mut Pull<'_, '_>,
    ) -> Result<()> {
        let edge = &pull.node.edges()[i];
        let grad = self.run(dy, saved, pull.node.location)?;
        let grad = match pull.node.attrs::<CallShapes>() {
            Some(framed) => grad.unbroadcast(&framed.shapes[i]),
            None => grad,
        };
        pull.sink.deliver(edge, T::wrap(grad))
    }
}

/// The tangent of the result, if each part is one op: of an elementwise op, how a gradient follows from
/// `dy` is also how the result's tangent follows from that of the input.
pub(super) fn push<T: Float>(
    steps: [Option<FromGradient>; 2],
    push: &mut Push<'_>,
) -> Result<Option<Slots>> {
    let has_step = |(tangent, step): (&Option<_>, &Option<_>)| tangent.is_none() || step.is_some();
    if !push.tangents.iter().zip(&steps).all(has_step) {
        return Ok(None);
    }
    let saved = push.read()?;
    let mut parts = [None, None];
    for (part, (tangent, step)) in parts.iter_mut().zip(push.tangents.iter_mut().zip(steps)) {
        if let (Some(tangent), Some(step)) = (tangent.take(), step) {
            *part = Some(step.run(Input::Own(typed::<T>(tangent)), &saved, push.node.location)?);
        }
    }
    let [a, b] = parts;
    let Some(dy) = add_parts(a, b) else { return Ok(None) };
    // A single part may be that of a broadcast operand.
    let dy = match push.node.attrs::<CallShapes>() {
        Some(framed) if dy.shape() != &framed.frame.shape[..] => {
            dy.rebroadcast(&framed.frame.shape)
        }
        _ => dy,
    };
    Ok(Some(Slots::from_elem(Some(T::wrap(dy)), 1)))
}
