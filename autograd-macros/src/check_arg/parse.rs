//! Parses a `check(..)`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, RangeLimits, Token};

use super::messages;
use crate::errors::Errors;
use crate::tokens::{parts, text};

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

/// Parses an argument of the attribute that begins with `check`; `None` for any other argument.
pub(crate) fn parse(part: &TokenStream, errors: &mut Errors) -> Option<Option<Check>> {
    let mut trees = part.clone().into_iter();
    let Some(TokenTree::Ident(word)) = trees.next() else { return None };
    if word != "check" {
        return None;
    }
    let inputs = match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => {
            group.stream()
        }
        _ => {
            errors.at(part, messages::without_inputs());
            return Some(None);
        }
    };
    let mut check = Check { word, text: text(&inputs), given: Vec::new() };
    let mut valid = true;
    for (input, comma) in parts(inputs) {
        if input.is_empty() {
            errors.at(comma, messages::empty());
            valid = false;
            continue;
        }
        match given(&input) {
            Ok(given) => check.given.push(given),
            Err(Some((at, message))) => {
                errors.at(at, message);
                valid = false;
            }
            Err(None) => {
                errors.at(input, messages::malformed());
                valid = false;
            }
        }
    }
    // A check with a mistake is dropped: its inputs would be reported as missing.
    Some(valid.then_some(check))
}

type Wrong = Option<(TokenStream, String)>;

/// `name = value`
fn given(tokens: &TokenStream) -> Result<Given, Wrong> {
    let read = |input: ParseStream<'_>| {
        let name = input.call(Ident::parse_any)?;
        let colon = input.parse::<Option<Token![:]>>()?.is_some();
        if !colon {
            input.parse::<Token![=]>()?;
        }
        Ok((name, colon, input.parse::<TokenStream>()?))
    };
    let (name, colon, written) = read.parse2(tokens.clone()).map_err(|_| None)?;
    if colon {
        return Err(Some((tokens.clone(), messages::colon(&name.to_string(), &text(&written)))));
    }
    Ok(Given { name, value: value(&written)?, tokens: written })
}

/// Parses a list in brackets, with an optional range after it, or any expression.
fn value(tokens: &TokenStream) -> Result<Value, Wrong> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is_in = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "in");
    let range = trees.iter().position(is_in);
    let (before, after) = trees.split_at(range.unwrap_or(trees.len()));
    let range = match after.split_first() {
        None => None,
        Some((_, ends)) => Some(self::range(ends.iter().cloned().collect(), after)?),
    };
    match (before, range) {
        ([TokenTree::Group(group)], range) if group.delimiter() == Delimiter::Bracket => {
            let values = parts(group.stream()).into_iter().map(|(part, _)| value(&part));
            Ok(Value::List(values.collect::<Result<_, _>>()?, range))
        }
        (_, None) => match syn::parse2::<Expr>(tokens.clone()) {
            Ok(expr) => Ok(Value::Expr(Box::new(expr))),
            Err(_) => Err(None),
        },
        (_, Some(_)) => {
            let after = after.iter().cloned().collect();
            Err(Some((after, messages::range_without_shape("x"))))
        }
    }
}

fn range(ends: TokenStream, all: &[TokenTree]) -> Result<Box<Range>, Wrong> {
    if let Ok(Expr::Range(range)) = syn::parse2::<Expr>(ends)
        && let (Some(low), RangeLimits::HalfOpen(_), Some(high)) =
            (range.start, range.limits, range.end)
    {
        return Ok(Box::new(Range { low: *low, high: *high }));
    }
    Err(Some((all.iter().cloned().collect(), messages::range())))
}
