//! What stands between the parentheses of `#[py_layer(..)]`.

use crate::tokens::parts;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::Path;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};

use crate::check_arg::{self, Check};
use crate::errors::Errors;
use crate::messages;

/// The arguments of the attribute.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) no_grad: Option<Span>,
    /// Whether it stands there in a form that there is not, which was reported.
    pub(crate) meant_no_grad: bool,
    pub(crate) once_differentiable: Option<Span>,
    /// Whether backward is meant to be another than the derivative.
    pub(crate) surrogate: Option<Span>,
    pub(crate) krate: Option<Path>,
    /// Warnings that are silenced.
    pub(crate) allowed: Vec<Ident>,
    /// The tests to generate.
    pub(crate) checks: Vec<Check>,
}

const NAMES: [&str; 6] = ["no_grad", "once_differentiable", "surrogate", "check", "crate", "allow"];

/// The warnings that `allow(..)` silences.
pub(crate) const WARNINGS: [&str; 2] = ["unread_saved", "none_gradient"];

/// Reads them one by one, so that each mistake is reported.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    for (part, comma) in parts(tokens) {
        if part.is_empty() {
            errors.at(comma, messages::empty_argument());
            continue;
        }
        if let Some(check) = check_arg::parse(&part, errors) {
            args.checks.extend(check);
            continue;
        }
        match Argument::parse.parse2(part.clone()) {
            Ok(argument) => args.add(argument, errors),
            Err(_) => {
                // What was meant is known: that there is no backward follows from it.
                args.meant_no_grad |= part.to_string().contains("no_grad");
                let message = malformed(&part);
                errors.at(part, message);
            }
        }
    }
    args
}

/// What is wrong with an argument that cannot be read: most is known by its name.
fn malformed(part: &TokenStream) -> String {
    match part.clone().into_iter().next() {
        Some(TokenTree::Ident(name)) if name == "crate" => messages::argument_needs_path(),
        Some(TokenTree::Ident(name)) if name == "allow" => messages::allow_needs_names(),
        Some(TokenTree::Ident(name)) if NAMES.iter().any(|known| name == known) => {
            messages::argument_takes_no_value(&name.to_string())
        }
        _ => messages::malformed_argument(),
    }
}

/// `crate = path`
pub(crate) fn crate_path(input: ParseStream<'_>) -> syn::Result<Path> {
    input.parse::<syn::Token![crate]>()?;
    input.parse::<syn::Token![=]>()?;
    input.call(Path::parse_mod_style)
}

/// `name`, `name = path` or `name(name, ..)`.
struct Argument {
    name: Ident,
    value: Option<Path>,
    list: Option<Vec<Ident>>,
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
        let list = if value.is_none() && name == "allow" && input.peek(syn::token::Paren) {
            let inner;
            syn::parenthesized!(inner in input);
            let names = inner.parse_terminated(Ident::parse_any, syn::Token![,])?;
            Some(names.into_iter().collect())
        } else {
            None
        };
        Ok(Self { name, value, list })
    }
}

impl Args {
    fn add(&mut self, argument: Argument, errors: &mut Errors) {
        let Argument { name, value, list } = argument;
        let text = name.to_string();
        if text == "allow" {
            return self.allow(&name, list.unwrap_or_default(), errors);
        }
        let again = match (text.as_str(), value) {
            ("no_grad", None) => self.no_grad.replace(name.span()).is_some(),
            ("once_differentiable", None) => {
                self.once_differentiable.replace(name.span()).is_some()
            }
            ("surrogate", None) => self.surrogate.replace(name.span()).is_some(),
            ("crate", Some(path)) => self.krate.replace(path).is_some(),
            ("no_grad" | "once_differentiable" | "surrogate", Some(value)) => {
                self.meant_no_grad |= text == "no_grad";
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

    fn allow(&mut self, name: &Ident, list: Vec<Ident>, errors: &mut Errors) {
        if list.is_empty() {
            return errors.at(name, messages::allow_needs_names());
        }
        for warning in list {
            let text = warning.to_string();
            if !WARNINGS.contains(&text.as_str()) {
                let near = crate::model::nearest(&text, &WARNINGS);
                errors.at(warning, messages::unknown_warning(&text, near));
            } else if self.allows(&text) {
                errors.at(warning, messages::repeated_argument(&text));
            } else {
                self.allowed.push(warning);
            }
        }
    }

    pub(crate) fn allows(&self, warning: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == warning)
    }
}
