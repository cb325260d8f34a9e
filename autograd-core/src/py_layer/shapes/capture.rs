//! Calls of ops that only show their lines: a program learns the form of an output without a run of the op.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::inputs::{InputTensors, tensors};
use super::Shapes;
use crate::graph::{AnyTensor, Element, Events, Observer, Tensor, observer, observes};

/// While it observes, an op with a line whose outputs are single tensors does not run forward: it returns numbers
/// in their place.
#[derive(Default)]
pub(crate) struct Capture {
    pub(crate) calls: RefCell<Vec<Call>>,
}

pub(crate) struct Call {
    pub(crate) line: &'static Shapes,
    /// One list for each tensor input.
    pub(crate) inputs: Vec<Vec<AnyTensor>>,
    pub(crate) integers: Vec<usize>,
    /// What it returned.
    pub(crate) outputs: Vec<AnyTensor>,
}

impl Observer for Capture {
    fn events(&self) -> Events {
        Events::SHAPES
    }
}

/// The call, if it is captured: then its integers are lengths.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn captured(
    line: &'static Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
) -> Option<Captured> {
    match cfg!(feature = "static-graph") && observes(Events::SHAPES) {
        true => capture(line, inputs, integers),
        false => None,
    }
}

/// A call that is captured.
#[doc(hidden)]
pub struct Captured(Rc<Capture>);

#[cold]
fn capture(
    line: &'static Shapes,
    inputs: &[InputTensors<'_>],
    integers: &[Option<usize>],
) -> Option<Captured> {
    let capture = observer::<Capture>()?;
    let integers = integers.iter().copied().collect::<Option<_>>()?;
    let inputs = inputs.iter().map(|input| tensors(*input)).collect();
    capture.calls.borrow_mut().push(Call { line, inputs, integers, outputs: Vec::new() });
    Some(Captured(capture))
}

impl Captured {
    /// The next output.
    #[must_use]
    pub fn output<T: Element>(&self) -> Tensor<T> {
        let output = T::filled(&[], T::default());
        if let Some(call) = self.0.calls.borrow_mut().last_mut() {
            call.outputs.push(T::wrap(output.clone()));
        }
        output
    }
}
