//! What the programs share: pictures as SVG, and the code of the book as tests.

mod plot;

pub use plot::{Image, draw_curves, draw_image};

/// Each program of the book is compiled and run by `cargo test -p examples --doc`.
#[cfg(doctest)]
mod book {}
