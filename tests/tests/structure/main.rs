//! The workspace itself: its crates, sources, documents and public items.

mod dependencies;
mod documents;
mod layering;
mod names;
mod public_api;
