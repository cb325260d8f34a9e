//! What expansions of the macros call, and nothing else. No part of the public interface.
#![allow(missing_docs, reason = "hidden from users")]

pub use crate::error::Result;
pub use crate::graph::Tensor;
pub use crate::nn::{Module, Visitor as ModuleVisitor};
pub use crate::py_layer::*;
pub use crate::static_graph::private::*;
