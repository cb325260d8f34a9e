//! Warnings about legal but wrong code. On stable Rust macros cannot emit warnings, so the expansion uses
//! a deprecated item at the user's span.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote_spanned;
use syn::Type;

use super::calls::{Uses, grads, is_stub, returned_parts};
use crate::args::Args;
use crate::messages;
use crate::model::{Derivative, Function, Layer, bare, nearest};
use crate::tokens::{ends, first_span, plain_name, text};

pub(crate) fn warnings(layer: &Layer, args: &Args) -> TokenStream {
    let Some(backward) = &layer.backward else { return TokenStream::new() };
    if layer.is_formula || is_stub(&backward.function.body.stream()) {
        return TokenStream::new();
    }
    let mut warnings = TokenStream::new();
    if !args.allows("unread_saved") {
        warnings.extend(unread_saved(layer, backward));
    }
    if !args.allows("none_gradient") {
        warnings.extend(none_gradient(layer, backward));
    }
    // A body with a syntax error may not be finished.
    if !warnings.is_empty() && !layer.functions().all(Function::is_read) {
        return TokenStream::new();
    }
    warnings
}

/// `use of deprecated constant ..: message`, on these tokens.
fn warning(tokens: impl quote::ToTokens, name: &str, message: &str) -> TokenStream {
    let (first, _) = ends(tokens.into_token_stream());
    let name = Ident::new(name, first);
    let declared = Ident::new(&name.to_string(), first.resolved_at(Span::call_site()));
    quote_spanned! {first=>
        const _: () = {
            #[deprecated(note = #message)]
            const #declared: () = ();
            #name
        };
    }
}

fn unread_saved(layer: &Layer, backward: &Derivative) -> Option<TokenStream> {
    let saved = layer.saved.as_ref()?;
    let nothing = matches!(bare(saved), Type::Tuple(tuple) if tuple.elems.is_empty());
    let may_read = |of: &Derivative| {
        let trees = of.function.trees();
        // The compiler reports a misspelt call.
        let is_near = |word: &Ident| nearest(&word.to_string(), &["saved_tensor"]).is_some();
        trees.find_ident(is_near).is_some()
            || of.context.as_ref().is_some_and(|context| Uses::new(trees, context).escapes)
    };
    let is_unread = !nothing && !may_read(backward) && !layer.jvp.as_ref().is_some_and(may_read);
    is_unread.then(|| warning(saved, "unread_saved", &messages::unread_saved()))
}

fn none_gradient(layer: &Layer, backward: &Derivative) -> Option<TokenStream> {
    let (body, trees) = (&backward.function.body, backward.function.trees());
    let inputs = layer.differentiable();
    let fields: Vec<Ident> = match backward.returns.by_name() {
        Some(_) => {
            let literals = grads(trees);
            let [literal] = &literals[..] else { return None };
            let is_input = |field: &Ident| inputs.iter().any(|(_, param, _)| param.ident == *field);
            let none =
                literal.iter().filter(|(field, value)| is_input(field) && text(value) == "None");
            none.map(|(field, _)| field.clone()).collect()
        }
        None if trees.mentions("None") && !trees.mentions("return") => {
            let parts = returned_parts(body);
            if parts.len() != inputs.len() {
                return None;
            }
            let none = parts.into_iter().zip(&inputs).filter(|(part, _)| text(part) == "None");
            let named = none.map(|(part, (_, param, _))| {
                let mut name = param.ident.clone();
                name.set_span(first_span(&part));
                name
            });
            named.collect()
        }
        None => return None,
    };
    let each = fields
        .iter()
        .map(|field| warning(field, "none_gradient", &messages::none_gradient(&plain_name(field))));
    Some(each.collect())
}
