//! What stands between the parentheses of `#[py_layer(..)]`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::Path;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};

use crate::errors::Errors;
use crate::messages;

/// The arguments of the attribute.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) no_grad: Option<Span>,
    pub(crate) once_differentiable: Option<Span>,
    pub(crate) krate: Option<Path>,
}

const NAMES: [&str; 3] = ["no_grad", "once_differentiable", "crate"];

/// Reads them one by one, so that each mistake is told.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    let mut rest = tokens.into_iter().peekable();
    while rest.peek().is_some() {
        let part: TokenStream = rest.by_ref().take_while(|tree| !is_comma(tree)).collect();
        if part.is_empty() {
            errors.at_span(Span::call_site(), messages::empty_argument());
            continue;
        }
        match Argument::parse.parse2(part.clone()) {
            Ok(argument) => args.add(argument, errors),
            Err(_) => errors.at(part, messages::malformed_argument()),
        }
    }
    args
}

fn is_comma(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ',')
}

/// `name` or `name = path`.
struct Argument {
    name: Ident,
    value: Option<Path>,
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.peek(syn::Token![=]) {
            input.parse::<syn::Token![=]>()?;
            Some(input.call(Path::parse_mod_style)?)
        } else {
            None
        };
        Ok(Self { name, value })
    }
}

impl Args {
    fn add(&mut self, argument: Argument, errors: &mut Errors) {
        let Argument { name, value } = argument;
        let text = name.to_string();
        let again = match (text.as_str(), value) {
            ("no_grad", None) => self.no_grad.replace(name.span()).is_some(),
            ("once_differentiable", None) => {
                self.once_differentiable.replace(name.span()).is_some()
            }
            ("crate", Some(path)) => self.krate.replace(path).is_some(),
            ("no_grad" | "once_differentiable", Some(value)) => {
                return errors.at(value, messages::argument_takes_no_value(&text));
            }
            ("crate", None) => return errors.at(name, messages::argument_needs_path()),
            _ => {
                let near = crate::model::nearest(&text, &NAMES);
                return errors.at(name, messages::unknown_argument(&text, near));
            }
        };
        if again {
            errors.at(name, messages::repeated_argument(&text));
        }
    }
}
