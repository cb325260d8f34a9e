//! The workspace itself: its crates, sources and documents.

mod dependencies;
mod documents;
mod layering;
mod names;
