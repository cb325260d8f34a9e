//! What stands between the parentheses: `elementwise`, `reduce = ..`, `surrogate`, `verify`,
//! `check(..)`, `crate = path`.

use crate::tokens::parts;
use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{LitInt, Path, Token};

use super::messages;
use crate::errors::Errors;
use crate::model::nearest;

/// The arguments of the attribute.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) elementwise: Option<Span>,
    pub(crate) surrogate: Option<Span>,
    pub(crate) verify: Option<Span>,
    pub(crate) reduce: Option<Reduce>,
    /// With what the other form of the macro shares.
    pub(crate) common: crate::args::Args,
}

/// `sum`, `mean(-1)`, `sum(0, 1)`
pub(crate) struct Reduce {
    pub(crate) name: Ident,
    pub(crate) axes: Vec<isize>,
}

const NAMES: [&str; 6] = ["elementwise", "reduce", "surrogate", "verify", "check", "crate"];

/// Reads them one by one, so that each mistake is reported.
pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    for (part, comma) in parts(tokens) {
        if part.is_empty() {
            errors.at(comma, crate::messages::empty_argument());
            continue;
        }
        if let Some(check) = crate::check_arg::parse(&part, errors) {
            args.common.checks.extend(check);
            continue;
        }
        match (|input: ParseStream<'_>| args.read(input)).parse2(part.clone()) {
            Ok(Ok(())) => {}
            Ok(Err((at, message))) => errors.at(at, message),
            Err(_) => errors.at(part, messages::malformed_argument()),
        }
    }
    args
}

impl Args {
    fn read(&mut self, input: ParseStream<'_>) -> syn::Result<Result<(), (Ident, String)>> {
        let name = input.call(Ident::parse_any)?;
        let text = name.to_string();
        let again = match text.as_str() {
            "elementwise" => self.elementwise.replace(name.span()).is_some(),
            "surrogate" => self.surrogate.replace(name.span()).is_some(),
            "verify" => self.verify.replace(name.span()).is_some(),
            "crate" => {
                input.parse::<Token![=]>()?;
                self.common.krate.replace(input.call(Path::parse_mod_style)?).is_some()
            }
            "reduce" => {
                input.parse::<Token![=]>()?;
                let reduce: Reduce = input.parse()?;
                if reduce.name != "sum" && reduce.name != "mean" {
                    let message = messages::unknown_reduction(&reduce.name.to_string());
                    return Ok(Err((reduce.name, message)));
                }
                self.reduce.replace(reduce).is_some()
            }
            _ => {
                input.parse::<TokenStream>()?;
                let message = messages::unknown_argument(&text, nearest(&text, &NAMES));
                return Ok(Err((name, message)));
            }
        };
        if !input.is_empty() {
            return Err(input.error("more than an argument"));
        }
        let repeated = again.then(|| (name, crate::messages::repeated_argument(&text)));
        Ok(repeated.map_or(Ok(()), Err))
    }
}

impl Parse for Reduce {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let mut axes = Vec::new();
        if input.peek(syn::token::Paren) {
            let inner;
            syn::parenthesized!(inner in input);
            while !inner.is_empty() {
                let negative = inner.parse::<Option<Token![-]>>()?.is_some();
                let axis: isize = inner.parse::<LitInt>()?.base10_parse()?;
                axes.push(if negative { -axis } else { axis });
                inner.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(Self { name, axes })
    }
}
