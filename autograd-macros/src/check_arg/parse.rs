//! Parses a `check(..)`.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprRange, Ident, RangeLimits, Token};

use super::messages;
use crate::errors::Errors;
use crate::tokens::{parts, text};

pub(crate) struct Check {
    pub(crate) word: Ident,
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
    List(Vec<Value>, Option<Box<ExprRange>>),
    Expr(Box<Expr>),
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
    let before = errors.count();
    for (input, comma) in parts(inputs) {
        match input.is_empty() {
            true => errors.at(comma, messages::empty()),
            false => check.given.extend(given(&input, errors)),
        }
    }
    // A check with a mistake is dropped: its inputs would be reported as missing.
    Some((errors.count() == before).then_some(check))
}

/// `name = value`
fn given(tokens: &TokenStream, errors: &mut Errors) -> Option<Given> {
    let read = |input: ParseStream<'_>| {
        let name = input.call(Ident::parse_any)?;
        let colon = input.parse::<Option<Token![:]>>()?.is_some();
        if !colon {
            input.parse::<Token![=]>()?;
        }
        Ok((name, colon, input.parse::<TokenStream>()?))
    };
    match read.parse2(tokens.clone()) {
        Err(_) => errors.at(tokens, messages::malformed()),
        Ok((name, true, value)) => {
            errors.at(tokens, messages::colon(&name.to_string(), &text(&value)));
        }
        Ok((name, false, written)) => {
            let value = value(&written, tokens, errors)?;
            return Some(Given { name, value, tokens: written });
        }
    }
    None
}

/// Parses a list in brackets, with an optional range after it, or any expression. `all`: the whole input.
fn value(tokens: &TokenStream, all: &TokenStream, errors: &mut Errors) -> Option<Value> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is_in = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "in");
    let (before, after) = trees.split_at(trees.iter().position(is_in).unwrap_or(trees.len()));
    let range = match after.split_first() {
        None => None,
        Some((_, ends)) => match syn::parse2::<Expr>(ends.iter().cloned().collect()) {
            Ok(Expr::Range(range))
                if range.start.is_some()
                    && matches!(range.limits, RangeLimits::HalfOpen(_))
                    && range.end.is_some() =>
            {
                Some(Box::new(range))
            }
            _ => {
                errors.at(after.iter().cloned().collect::<TokenStream>(), messages::range());
                return None;
            }
        },
    };
    if let [TokenTree::Group(group)] = before
        && group.delimiter() == Delimiter::Bracket
    {
        let values = parts(group.stream()).into_iter().map(|(part, _)| value(&part, all, errors));
        return Some(Value::List(values.collect::<Option<_>>()?, range));
    }
    match syn::parse2::<Expr>(tokens.clone()) {
        _ if range.is_some() => {
            let after = after.iter().cloned().collect::<TokenStream>();
            errors.at(after, messages::range_without_shape("x"));
        }
        Ok(expr) => return Some(Value::Expr(Box::new(expr))),
        Err(_) => errors.at(all, messages::malformed()),
    }
    None
}
