//! `shapes(x: [b.., n], w: [n, m] -> [b.., m])`: the shapes of an op's tensors.

mod expand;
mod known;
mod messages;
mod parse;
mod rules;
mod walk;

pub(crate) use expand::{Checks, checks, table};
pub(crate) use parse::{Length, Line, parse};
pub(crate) use rules::check;

pub(crate) use messages::elementwise;
pub(crate) use walk::check as check_bodies;
