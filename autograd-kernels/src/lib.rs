//! The numeric part of autograd-core: arrays, elementwise formulas, matrix products, threads,
//! random numbers; no gradients and no macros, so it compiles while the macro crates are still
//! being built. Not a public interface: anything may change with any release. Programs depend on
//! `autograd-core`, which re-exports the public items.

#![allow(missing_docs, reason = "autograd-core is the only user, and documents what it re-exports")]
#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for readers of the sources")]
#![allow(clippy::len_without_is_empty, reason = "nobody asks whether a value is empty")]

pub mod array;
mod error;
pub mod formula;
pub mod random;

pub use error::{Error, Result};
