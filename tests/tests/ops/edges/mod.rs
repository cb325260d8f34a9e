//! Special numbers: elements that are not selected, the ends of a type's range, limits at infinity,
//! and points without a derivative. Each module is a table of ops, tested in every mode.

mod limits;
mod no_derivative;
mod ranges;
mod selection;
