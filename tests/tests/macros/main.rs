//! The macros: elementwise layers, generated tests, expansions written out, and lints.

mod check_arg;
mod debug;
mod elementwise;
mod elementwise_forms;
mod expansions;
mod lints;
mod wrong_rules;
