//! Numbers at the edges: what a selection leaves out, the ends of a type's range, limits, and points
//! without a derivative. Each module is a table of ops, tried in every mode.

mod limits;
mod no_derivative;
mod ranges;
mod selection;
