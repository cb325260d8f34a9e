//! The arguments of `#[py_layer(..)]`, in both of its forms.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{LitInt, LitStr, Path, Token};

use crate::check_arg::{self, Check};
use crate::errors::Errors;
use crate::export::{self, Export};
use crate::messages;
use crate::model::nearest;
use crate::shapes::{self, Line};
use crate::tokens::parts;

#[derive(Default)]
pub(crate) struct Args {
    pub(crate) no_grad: Option<Span>,
    /// Whether the arguments mention `no_grad`, also in a wrong way.
    pub(crate) means_no_grad: bool,
    pub(crate) once_differentiable: Option<Span>,
    /// Set if backward is deliberately not the derivative.
    pub(crate) surrogate: Option<Span>,
    pub(crate) elementwise: Option<Span>,
    pub(crate) verify: Option<Span>,
    pub(crate) reduce: Option<Reduce>,
    pub(crate) krate: Option<Path>,
    allowed: Vec<String>,
    pub(crate) checks: Vec<Check>,
    /// `check(exhaustive)`
    pub(crate) exhaustive: Option<Ident>,
    pub(crate) shapes: Option<Line>,
    pub(crate) export: Option<Export>,
    pub(crate) is_formula: bool,
    /// Whether the op can repeat a call, for `AUTOGRAD_VERIFY`.
    pub(crate) verifies: bool,
}

/// `sum`, `mean(-1)`, `sum(0, 1)`
pub(crate) struct Reduce {
    pub(crate) name: Ident,
    pub(crate) axes: Vec<isize>,
}

/// The attribute, and the list of its arguments as messages show it.
pub(crate) type AttributeArgs = (&'static str, &'static str);

pub(crate) const LAYER: AttributeArgs = (
    "#[py_layer]",
    "elementwise, no_grad, once_differentiable, surrogate, shapes(..), check(..), export, crate = path, allow(..)",
);

pub(crate) const ELEMENTWISE: AttributeArgs = (
    "#[py_layer(elementwise)]",
    "elementwise, reduce = sum, reduce = mean(-1), surrogate, verify, check(..), export, crate = path",
);

const WARNINGS: [&str; 3] = ["unread_saved", "none_gradient", "shapes"];

pub(crate) fn parse(tokens: TokenStream, takes: &AttributeArgs, errors: &mut Errors) -> Args {
    let mut args = Args::default();
    for (part, comma) in parts(tokens) {
        if part.is_empty() {
            errors.at(comma, messages::empty_argument());
        } else if let Some(word) = check_arg::exhaustive(&part) {
            if let Some(again) = args.exhaustive.replace(word) {
                errors.at(again, messages::twice("exhaustive"));
            }
        } else if let Some(check) = check_arg::parse(&part, errors) {
            args.checks.extend(check);
        } else if let Some(line) = shapes::parse(&part, errors) {
            let again = line.is_some() && args.shapes.is_some();
            match line {
                Some(line) if again => errors.at(&line.word, messages::twice("shapes")),
                line => args.shapes = line.or(args.shapes),
            }
        } else if let Some(export) = export::parse(&part, errors) {
            match export {
                Some(again) if args.export.is_some() => {
                    errors.at(again.word(), messages::twice("export"));
                }
                export => args.export = export.or(args.export),
            }
        } else {
            let text = part.to_string();
            args.means_no_grad |= text.contains("no_grad") && !text.starts_with("crate");
            args.add(part, takes, errors);
        }
    }
    args
}

/// `crate = path`, or by mistake `crate = "path"`.
pub(crate) fn crate_path(input: ParseStream<'_>) -> syn::Result<(Token![crate], TokenStream)> {
    let word = input.parse()?;
    input.parse::<Token![=]>()?;
    let path = match input.parse::<Option<LitStr>>()? {
        Some(text) => text.to_token_stream(),
        None => input.call(Path::parse_mod_style)?.to_token_stream(),
    };
    Ok((word, path))
}

/// Stores the path of a `crate = path`. Returns whether the argument is one.
pub(crate) fn take_crate(
    part: &TokenStream,
    place: &mut Option<Path>,
    errors: &mut Errors,
) -> bool {
    let Ok((_, path)) = crate_path.parse2(part.clone()) else { return false };
    let path = syn::parse2::<LitStr>(path.clone()).map_or(path, |text| {
        errors.at(&text, messages::crate_path_as_text(&text.value()));
        // The path is assumed, so that nothing else is reported.
        text.parse_with(Path::parse_mod_style).ok().to_token_stream()
    });
    match place {
        Some(_) => errors.at(part, messages::twice("crate")),
        None => *place = Path::parse_mod_style.parse2(path).ok(),
    }
    true
}

impl Args {
    fn add(&mut self, part: TokenStream, takes: &AttributeArgs, errors: &mut Errors) {
        let (attribute, written) = takes;
        let all: Vec<String> = written.split(", ").map(str::to_owned).collect();
        let names: Vec<&str> = all.iter().filter_map(|of| of.split([' ', '(']).next()).collect();
        let written = messages::list(&all);
        let mut trees = part.clone().into_iter();
        let Some(TokenTree::Ident(name)) = trees.next() else {
            return errors.at(part, messages::malformed_argument(attribute, &written));
        };
        let (text, rest) = (name.to_string(), trees.collect::<TokenStream>());
        if !names.contains(&text.as_str()) {
            let near = nearest(&text, &names);
            errors.complete(&name, "arguments");
            return errors.at(name, messages::unknown_argument(attribute, &text, &written, near));
        }
        let flag = match text.as_str() {
            "no_grad" => &mut self.no_grad,
            "once_differentiable" => &mut self.once_differentiable,
            "surrogate" => &mut self.surrogate,
            "elementwise" => &mut self.elementwise,
            "verify" => &mut self.verify,
            "allow" => return self.allow(&name, rest, errors),
            "crate" => {
                if !take_crate(&part, &mut self.krate, errors) {
                    errors.at(part, messages::argument_needs_path());
                }
                return;
            }
            _ => {
                let malformed = messages::malformed_argument(attribute, &written);
                return self.reduce(part, rest, malformed, errors);
            }
        };
        if !rest.is_empty() {
            errors.at(part, messages::argument_takes_no_value(&text));
        } else if flag.replace(name.span()).is_some() {
            errors.at(name, messages::twice(&text));
        }
    }

    fn reduce(
        &mut self,
        part: TokenStream,
        rest: TokenStream,
        malformed: String,
        errors: &mut Errors,
    ) {
        match syn::parse2::<Reduce>(rest) {
            Ok(reduce) if reduce.name != "sum" && reduce.name != "mean" => {
                let message = messages::unknown_reduction(&reduce.name.to_string());
                errors.at(reduce.name, message);
            }
            Ok(reduce) => {
                if self.reduce.replace(reduce).is_some() {
                    errors.at(part, messages::twice("reduce"));
                }
            }
            Err(_) => errors.at(part, malformed),
        }
    }

    fn allow(&mut self, name: &Ident, rest: TokenStream, errors: &mut Errors) {
        let list = |input: ParseStream<'_>| {
            let inner;
            syn::parenthesized!(inner in input);
            inner.parse_terminated(Ident::parse_any, Token![,])
        };
        let list: Vec<Ident> = list.parse2(rest).into_iter().flatten().collect();
        if list.is_empty() {
            errors.at(name, messages::allow_needs_names());
        }
        for warning in list {
            let text = warning.to_string();
            if !WARNINGS.contains(&text.as_str()) {
                let near = nearest(&text, &WARNINGS);
                errors.at(warning, messages::unknown_warning(&text, near));
            } else if self.allows(&text) {
                errors.at(warning, messages::twice(&text));
            } else {
                self.allowed.push(text);
            }
        }
    }

    pub(crate) fn allows(&self, warning: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == warning)
    }
}

impl Parse for Reduce {
    /// `= mean(-1)`
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.parse::<Token![=]>()?;
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
