//! The shapes of nodes' outputs, which forward mode needs beside the rules. They are recorded while forward
//! mode is on in this thread, and dropped with it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::node::{NodeRef, Observers, Observing};
use super::parts::{Key, Token};
use crate::array::shape::copied;
use crate::array::{DType, Shape};

/// Element type and shape of each output; `None` for one that is not differentiable.
pub(crate) type OutputShapes = Vec<Option<(DType, Shape)>>;

type Noted = HashMap<Key, (Token, OutputShapes)>;

thread_local! {
    static SCOPES: Cell<u32> = const { Cell::new(0) };
    static NOTED: RefCell<Noted> = RefCell::new(Noted::new());
}

/// A guard that turns forward mode on in this thread until it is dropped, also by unwinding.
pub(crate) struct ForwardMode {
    _watching: Observing,
}

impl ForwardMode {
    pub(crate) fn start() -> Self {
        SCOPES.set(SCOPES.get() + 1);
        Self { _watching: Observing::start(&SHAPES) }
    }

    pub(crate) fn is_on() -> bool {
        SCOPES.get() != 0
    }
}

impl Drop for ForwardMode {
    fn drop(&mut self) {
        SCOPES.set(SCOPES.get() - 1);
        if !Self::is_on() {
            NOTED.take();
        }
    }
}

static SHAPES: Observers = Observers { recorded: None, output: Some(note), constant: None };

fn note(node: &NodeRef, slot: u32, (dtype, shape): (DType, &[usize]), _: Option<&dyn Any>) {
    let (token, slot) = (node.token(), slot as usize);
    NOTED.with_borrow_mut(|noted| {
        let (_, shapes) = noted.entry(token.key()).or_insert_with(|| (token, OutputShapes::new()));
        if shapes.len() <= slot {
            shapes.resize(slot + 1, None);
        }
        shapes[slot] = Some((dtype, copied(shape)));
    });
}

/// The outputs of a node; `None` if it was not recorded in this thread's forward mode.
pub(crate) fn output_shapes(node: &NodeRef) -> Option<OutputShapes> {
    let key = node.key()?;
    NOTED.with_borrow(|noted| noted.get(&key).map(|(_, shapes)| shapes.clone()))
}
