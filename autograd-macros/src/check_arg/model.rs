//! A `check(..)`, and the parameters that it gives values for.

use proc_macro2::{Ident, TokenStream};
use syn::Expr;

/// One `check(..)`.
pub(crate) struct Check {
    /// The word itself.
    pub(crate) word: Ident,
    /// What stands between the parentheses, as it was written.
    pub(crate) text: String,
    pub(crate) given: Vec<Given>,
}

/// `name = value`
pub(crate) struct Given {
    pub(crate) name: Ident,
    pub(crate) value: Value,
    /// The value as it was written.
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

/// A parameter of forward.
pub(crate) struct Parameter {
    pub(crate) ident: Ident,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Tensor(Tensor),
    Plain { default: Option<TokenStream> },
}

pub(crate) struct Tensor {
    pub(crate) form: Form,
    /// The type `Tensor<T>`.
    pub(crate) ty: TokenStream,
    /// `f32`, `i64`, .. or a name that is not known here.
    pub(crate) element: String,
    pub(crate) differentiable: bool,
}

/// How forward takes a tensor, or several.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    One,
    Optional,
    /// `&[Tensor<T>]`, `&[&Tensor<T>; N]`, `[&Tensor<T>; N]` and so on.
    List {
        references: bool,
        array: bool,
        borrowed: bool,
    },
}

impl Form {
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::List { .. })
    }
}

impl Tensor {
    /// Whether numbers for it cannot be guessed.
    pub(super) fn needs_range(&self) -> bool {
        matches!(self.element.as_str(), "i32" | "i64" | "u8")
    }
}
