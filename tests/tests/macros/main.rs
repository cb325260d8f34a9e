//! The macros: elementwise layers, generated tests, expansions written out, and lints.

mod check_arg;
mod debug;
mod elementwise;
mod elementwise_forms;
mod expansions;
mod lints;
#[allow(clippy::needless_borrows_for_generic_args, reason = "users write both forms")]
mod shapes;
mod shapes_empty;
#[allow(
    clippy::assign_op_pattern,
    clippy::let_and_return,
    clippy::manual_map,
    clippy::needless_borrows_for_generic_args,
    reason = "ops as users write them"
)]
mod shaped_ops {
    mod attention;
    mod distances;
    mod forms;
    mod indexing;
    mod layout;
    mod linear;
    mod lists;
    mod losses;
    mod matrices;
    mod norms;
    mod recurrent;
}
mod wrong_rules;
