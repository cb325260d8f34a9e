//! The shapes of nodes' outputs, which forward mode needs beside the rules. They are recorded while forward
//! mode is on in this thread, and dropped with it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;

use super::context::Events;
use super::node::{NodeRef, Observer};
use super::node_parts::{Key, Token};
use super::observing::{Observing, observer};
use crate::array::shape::copied;
use crate::array::{DType, Shape};

/// Element type and shape of each output; `None` for one that is not differentiable.
pub(crate) type OutputShapes = Vec<Option<(DType, Shape)>>;

/// The shapes of outputs by node. All scopes of forward mode on a thread share one.
#[derive(Default)]
struct Shapes(RefCell<HashMap<Key, (Token, OutputShapes)>>);

/// A guard that turns forward mode on in this thread until it is dropped, also by unwinding.
pub(crate) struct ForwardMode(#[allow(dead_code, reason = "kept for its drop")] Observing<Shapes>);

impl ForwardMode {
    pub(crate) fn start() -> Self {
        Self(Observing::share(observer().unwrap_or_default()))
    }

    pub(crate) fn is_on() -> bool {
        observer::<Shapes>().is_some()
    }
}

impl Observer for Shapes {
    fn events(&self) -> Events {
        Events::OUTPUTS
    }

    fn output(
        &self,
        node: &NodeRef,
        slot: u32,
        (dtype, shape): (DType, &[usize]),
        _: Option<&dyn Any>,
    ) {
        let (token, slot) = (node.token(), slot as usize);
        let mut noted = self.0.borrow_mut();
        let (_, shapes) = noted.entry(token.key()).or_insert_with(|| (token, OutputShapes::new()));
        if shapes.len() <= slot {
            shapes.resize(slot + 1, None);
        }
        shapes[slot] = Some((dtype, copied(shape)));
    }
}

/// The outputs of a node; `None` if it was not recorded in this thread's forward mode.
pub(crate) fn output_shapes(node: &NodeRef) -> Option<OutputShapes> {
    let key = node.key()?;
    let shapes = observer::<Shapes>()?;
    let noted = shapes.0.borrow();
    noted.get(&key).map(|(_, shapes)| shapes.clone())
}
