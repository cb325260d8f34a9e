//! The model of a `check(..)`.

use proc_macro2::{Ident, TokenStream};
use syn::Expr;

pub(crate) struct Check {
    pub(crate) word: Ident,
    /// The arguments as written.
    pub(crate) text: String,
    pub(crate) given: Vec<Given>,
}

/// `name = value`
pub(crate) struct Given {
    pub(crate) name: Ident,
    pub(crate) value: Value,
    pub(crate) tokens: TokenStream,
}

pub(crate) enum Value {
    /// `[2, 3]`, `[2, 3] in 0.5..2.0`, `[[2, 3], [3]]`
    List(Vec<Value>, Option<Box<Range>>),
    Expr(Box<Expr>),
}

/// `in 0.5..2.0`
pub(crate) struct Range {
    pub(crate) low: Expr,
    pub(crate) high: Expr,
}
