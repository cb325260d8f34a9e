//! `scalar_op!`: an elementwise op in one line.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Token, Visibility};

use super::messages;
use crate::args::crate_path;
use crate::attributes::is_for_each_call;
use crate::errors::Errors;
use crate::library::{import, private};
use crate::messages::twice;
use crate::tokens::{find_ident, is_punct, named, parts, plain_name};
use crate::{fallback, layer};

/// The macro as a function: expands to the equivalent `#[py_layer(elementwise)]` block.
pub(crate) fn scalar_op(tokens: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let head = |input: ParseStream<'_>| {
        let attrs = input.call(Attribute::parse_outer)?;
        Ok((attrs, input.parse()?, input.parse()?, input.parse()?))
    };
    let head: syn::Result<(_, Visibility, Ident, TokenStream)> = head.parse2(tokens);
    let (attrs, vis, name, formulas) = match head {
        Ok(head) => head,
        Err(error) => {
            errors.at_span(error.span(), messages::scalar_form());
            return errors.into_tokens();
        }
    };
    let completions = for_editors(formulas.clone());
    // After an error only the name is known: calls accept anything.
    let name_only = |errors| {
        let op = fallback::of_tokens(quote!(#vis struct #name;), errors);
        quote!(#completions #op)
    };
    // `: y = (1.0 + x.exp()).ln(), dx = dy / (1.0 + (-x).exp())`, with each `crate = path`, of which one is right.
    let parser = |input: ParseStream<'_>| {
        input.parse::<Token![:]>()?;
        let output: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let value: Expr = input.parse()?;
        let (mut gradients, mut krate) = (Vec::<(Ident, Expr)>::new(), Vec::new());
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(Token![crate]) {
                krate.push(crate_path(input)?);
                continue;
            }
            let gradient = input.parse()?;
            input.parse::<Token![=]>()?;
            gradients.push((gradient, input.parse()?));
        }
        Ok((output, value, gradients, krate))
    };
    let (output, value, gradients, krate) = match parser.parse2(formulas) {
        Ok(formulas) if !formulas.2.is_empty() => formulas,
        other => {
            let place = other.err().map_or(name.span(), |error| error.span());
            errors.at_span(place, messages::scalar_form());
            return name_only(errors);
        }
    };
    if output != "y" {
        errors.at(&output, messages::scalar_value());
        return name_only(errors);
    }
    let expressions: Vec<&Expr> = gradients.iter().map(|(_, expression)| expression).collect();
    // In a `macro_rules!` the formula and the gradients' names may differ in hygiene: the identifiers are
    // taken from the formula.
    let (written, value_only) = (quote!(#value #(#expressions)*), quote!(#value));
    let mut inputs: Vec<Ident> = Vec::new();
    for (gradient, _) in &gradients {
        let text = plain_name(gradient);
        let input = text.strip_prefix('d').filter(|input| !matches!(*input, "y" | "dy"));
        let input = input.and_then(|input| named(input, gradient.span()));
        match input {
            Some(input) if inputs.contains(&input) => {
                errors.at(gradient, twice(&text));
            }
            Some(input) if used(&value_only, &input).is_none() => {
                errors.at(gradient, messages::scalar_unused(&text, &plain_name(&input)));
            }
            Some(input) => inputs.push(used(&written, &input).unwrap_or(input)),
            None => errors.at(gradient, messages::scalar_gradient(&text)),
        }
    }
    if !errors.is_empty() {
        return name_only(errors);
    }
    // Backward gets only the values that it names, so nothing else is saved.
    let own = [format_ident!("y"), format_ident!("dy")];
    let expressions_only = quote!(#(#expressions)*);
    let given = inputs.iter().chain(&own).filter_map(|name| used(&expressions_only, name));
    let given: Vec<Ident> = given.collect();
    let p = private();
    let real = quote!(#p::elementwise::Real);
    let together = |parts: Vec<TokenStream>| match parts.len() {
        1 => quote!(#(#parts)*),
        _ => quote!((#(#parts),*)),
    };
    let returned = together(vec![real.clone(); expressions.len()]);
    let gradients = together(expressions.iter().map(ToTokens::to_token_stream).collect());
    // Attributes for callers are on `apply`: the user has no block.
    let (calls, attrs): (Vec<_>, Vec<_>) = attrs.into_iter().partition(is_for_each_call);
    let forward = Ident::new("forward", Span::call_site().located_at(name.span()));
    let block = quote! {
        #(#attrs)*
        impl #name {
            /// Runs the op on these inputs.
            #(#calls)*
            #vis fn #forward(#(#inputs: #real),*) -> #real { #value }
            fn backward(#(#given: #real),*) -> #returned { #gradients }
        }
    };
    let krate = krate.iter().map(|(word, path)| quote!(#word = #path));
    let op = layer::layer(quote!(elementwise #(, #krate)*), block, false);
    quote!(#completions #op)
}

/// The formulas as a function for editors. An editor looks for the type of what is before its cursor at the same place
/// of the expansion without the word that is being typed, so the function is the same after an error. rust-analyzer
/// sets `miri`, which no lint reports as unknown.
fn for_editors(formulas: TokenStream) -> TokenStream {
    let (mut inputs, mut values, mut library) = (Vec::new(), Vec::new(), None);
    for (part, _) in parts(formulas) {
        let mut trees = part.into_iter().skip_while(|tree| is_punct(Some(tree), ':'));
        let (Some(TokenTree::Ident(name)), Some(_)) = (trees.next(), trees.next()) else {
            continue;
        };
        if name == "crate" {
            library = syn::parse2(trees.collect()).ok();
            continue;
        }
        let input = plain_name(&name).strip_prefix('d').and_then(|input| named(input, name.span()));
        inputs.extend(input.filter(|input| !inputs.contains(input)));
        let mut value: Vec<TokenTree> = trees.collect();
        value.pop_if(|last| is_punct(Some(last), '.'));
        // The compiler would report the syntax of others again.
        values.extend(syn::parse2::<Expr>(value.into_iter().collect()));
    }
    let place = |input: &Ident| {
        let mut input = input.clone();
        input.set_span(Span::call_site().resolved_at(input.span()));
        input
    };
    let (inputs, own) = (inputs.iter().map(place), ["y", "dy"].map(|name| format_ident!("{name}")));
    let (library, p) = (import(library.as_ref()), private());
    quote! {
        #[cfg(miri)]
        const _: () = {
            fn formulas<L: #p::elementwise::Lane>(
                #(#inputs: #p::elementwise::Real<L>,)* #(#own: #p::elementwise::Real<L>),*
            ) {
                #(let _ = #values;)*
            }
            #library
        };
    }
}

fn used(tokens: &TokenStream, name: &Ident) -> Option<Ident> {
    find_ident(tokens.clone(), |ident| plain_name(ident) == plain_name(name))
}
