//! `#[py_layer(elementwise)]`: a formula for each element instead of code on tensors.
//!
//! The stages are those of the other form of the macro, and so is what comes out after an error.

mod args;
mod check;
mod expand;
mod messages;
pub(crate) mod model;
mod parse;
mod scalar;

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use crate::errors::Errors;
use crate::expand::Mode;
use crate::{check_arg, fallback};
pub(crate) use args::Args;
pub(crate) use scalar::scalar_op;

/// Whether the arguments ask for this form.
pub(crate) fn is_asked_for(arguments: &TokenStream) -> bool {
    let mut first = true;
    arguments.clone().into_iter().any(|tree| {
        let here = first && matches!(&tree, TokenTree::Ident(name) if name == "elementwise");
        first = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ',');
        here
    })
}

/// The attribute as a plain function.
pub(crate) fn layer(arguments: TokenStream, block: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let args = args::parse(arguments, &mut errors);
    let Some(op) = parse::parse(block.clone(), &mut errors) else {
        return fallback::of_tokens(block, errors);
    };
    if let Some(exists) = op.exists {
        let (generics, name) = (syn::Generics::default(), &op.name);
        return fallback::of_existing(
            exists,
            &fallback::CALLS,
            &generics,
            &syn::parse_quote!(#name),
            errors,
        );
    }
    check::check(&op, &args, &mut errors);
    check_arg::check_formula(&op, &args, &mut errors);
    let (mode, reported) = fallback::mode(&op.name, errors, op.broken);
    let tests = matches!(mode, Mode::Full).then(|| check_arg::formula_tests(&op, &args));
    let expansion = expand::Expansion { op: &op, args: &args, mode }.tokens();
    quote!(#reported #expansion #tests)
}
