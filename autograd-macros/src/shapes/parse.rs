//! Parses the line of a `shapes(..)`.

use std::fmt;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{LitInt, Token, parenthesized};

use super::messages;
use crate::errors::Errors;
use crate::tokens::{is_group, is_punct, parts, plain_name, text};

pub(crate) struct Line {
    pub(crate) word: Ident,
    pub(crate) inputs: Vec<(Ident, TensorShape)>,
    pub(crate) outputs: Vec<TensorShape>,
}

/// The shape of a tensor, or of each tensor of a list.
#[derive(Clone)]
pub(crate) struct TensorShape {
    pub(crate) tokens: TokenStream,
    /// `None` for `_`, any shape.
    pub(crate) axes: Option<Vec<Axis>>,
    pub(crate) is_list: bool,
    /// The number of tensors of a list, if it is given.
    pub(crate) count: Option<Length>,
}

#[derive(Clone)]
pub(crate) enum Axis {
    One(Length),
    /// `b..`
    Many(Ident),
    /// `a.. & b..`
    Broadcast(Ident, Ident),
}

#[derive(Clone)]
pub(crate) enum Length {
    /// `_`
    Any(Span),
    Number(usize, Span),
    Name(Ident),
    Computed(Box<Self>, char, Box<Self>),
}

/// Parses an argument of the attribute that begins with `shapes`; `None` for any other argument.
pub(crate) fn parse(part: &TokenStream, errors: &mut Errors) -> Option<Option<Line>> {
    let mut trees = part.clone().into_iter();
    let Some(TokenTree::Ident(word)) = trees.next() else { return None };
    if word != "shapes" {
        return None;
    }
    let line = match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Parenthesis => {
            group.stream()
        }
        _ => {
            errors.at(part, messages::without_line());
            return Some(None);
        }
    };
    let trees: Vec<TokenTree> = line.clone().into_iter().collect();
    let is_arrow = |i: &usize| is_punct(trees.get(*i), '-') && is_punct(trees.get(i + 1), '>');
    let Some(arrow) = (0..trees.len()).find(is_arrow) else {
        errors.at(&word, messages::no_arrow());
        return Some(None);
    };
    let before = errors.count();
    let stream = |trees: &[TokenTree]| trees.iter().cloned().collect::<TokenStream>();
    let (given, returned) = (stream(&trees[..arrow]), &trees[arrow + 2..]);
    let mut inputs = Vec::new();
    for (part, comma) in parts(given) {
        match input.parse2(part.clone()) {
            _ if part.is_empty() => errors.at(comma, messages::empty_part()),
            Ok(input) => inputs.push(input),
            Err(error) => errors.syntax(&error),
        }
    }
    let returned = match returned {
        [TokenTree::Group(group)] if is_group(returned.first(), Delimiter::Parenthesis) => {
            parts(group.stream())
        }
        _ => vec![(stream(returned), None)],
    };
    if let [(_, Some(_)), ..] = &parts(stream(&trees[arrow + 2..]))[..] {
        let returned = &trees[arrow + 2..];
        let message = match returned.iter().any(|tree| is_punct(Some(tree), ':')) {
            true => messages::input_after_arrow(),
            false => messages::outputs_without_parentheses(&text(&stream(returned))),
        };
        errors.at(stream(returned), message);
        return Some(None);
    }
    let mut outputs = Vec::new();
    for (part, _) in returned {
        match TensorShape::parse.parse2(part.clone()) {
            _ if part.is_empty() => errors.at(&trees[arrow], messages::missing_shape()),
            Ok(output) => outputs.push(output),
            Err(error) => errors.syntax(&error),
        }
    }
    Some((errors.count() == before).then_some(Line { word, inputs, outputs }))
}

/// `x: [n, k]`
fn input(input: ParseStream<'_>) -> syn::Result<(Ident, TensorShape)> {
    let name: Ident =
        input.parse().map_err(|error| reworded(&error, messages::malformed_input()))?;
    if let Ok(equals) = input.parse::<Token![=]>() {
        let message = messages::equals(&plain_name(&name), &text(&input.parse::<TokenStream>()?));
        return Err(syn::Error::new(equals.span, message));
    }
    if input.parse::<Token![:]>().is_err() || input.is_empty() {
        return Err(syn::Error::new(name.span(), messages::without_shape(&plain_name(&name))));
    }
    Ok((name, input.parse()?))
}

fn reworded(error: &syn::Error, message: String) -> syn::Error {
    syn::Error::new(error.span(), message)
}

impl Parse for TensorShape {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let tokens = input.fork().parse()?;
        let shape = |axes| Self { tokens, axes, is_list: false, count: None };
        if input.parse::<Option<Token![_]>>()?.is_some() {
            input.is_empty().then_some(()).ok_or_else(|| input.error(messages::no_shape()))?;
            return Ok(shape(None));
        }
        let group: proc_macro2::Group =
            input.parse().map_err(|error| reworded(&error, messages::no_shape()))?;
        if group.delimiter() == Delimiter::Parenthesis {
            let written = text(&group.stream());
            return Err(syn::Error::new(group.span(), messages::not_in_brackets(&written)));
        }
        if group.delimiter() != Delimiter::Bracket || !input.is_empty() {
            return Err(syn::Error::new(group.span(), messages::no_shape()));
        }
        let inner = group.stream();
        if is_group(inner.clone().into_iter().next().as_ref(), Delimiter::Bracket) {
            return list.parse2(inner).map(|of| Self { tokens: group.to_token_stream(), ..of });
        }
        let axes = parts(inner).into_iter().map(|(part, comma)| match part.is_empty() {
            true => Err(syn::Error::new_spanned(comma, messages::no_length())),
            false => Axis::parse.parse2(part),
        });
        let axes = axes.collect::<syn::Result<Vec<_>>>()?;
        let mut groups = axes.iter().filter_map(|axis| match axis {
            Axis::Many(name) | Axis::Broadcast(name, _) => Some(name),
            Axis::One(_) => None,
        });
        match groups.nth(1) {
            Some(second) => Err(syn::Error::new(second.span(), messages::two_groups())),
            None => Ok(shape(Some(axes))),
        }
    }
}

/// `[n, d]; c`
fn list(input: ParseStream<'_>) -> syn::Result<TensorShape> {
    let group: TokenTree = input.parse()?;
    let each = TensorShape::parse.parse2(group.into())?;
    let count = match input.parse::<Option<Token![;]>>()? {
        Some(_) => Some(Length::parse_whole(input)?),
        None if input.is_empty() => None,
        None => return Err(input.error(messages::one_shape_of_list())),
    };
    Ok(TensorShape { is_list: true, count, ..each })
}

impl Axis {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if let Ok(dots) = input.parse::<Token![..]>() {
            return Err(syn::Error::new_spanned(dots, messages::unnamed_group()));
        }
        if !input.peek2(Token![..]) {
            return Ok(Self::One(Length::parse_whole(input)?));
        }
        let group = |input: ParseStream<'_>| -> syn::Result<Ident> {
            let name = input.parse()?;
            input.parse::<Token![..]>()?;
            Ok(name)
        };
        let name = group(input)?;
        let axis = match input.parse::<Option<Token![&]>>()? {
            Some(_) => Self::Broadcast(name, group(input)?),
            None => Self::Many(name),
        };
        match input.is_empty() {
            true => Ok(axis),
            false => Err(input.error(messages::no_length())),
        }
    }
}

impl Length {
    fn parse_whole(input: ParseStream<'_>) -> syn::Result<Self> {
        let length = Self::sum(input)?;
        match input.is_empty() {
            true => Ok(length),
            false => Err(input.error(messages::no_length())),
        }
    }

    fn sum(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut left = Self::product(input)?;
        while input.peek(Token![+]) || input.peek(Token![-]) {
            left = left.with(input, Self::product)?;
        }
        Ok(left)
    }

    fn product(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut left = Self::atom(input)?;
        while input.peek(Token![*]) || input.peek(Token![/]) {
            left = left.with(input, Self::atom)?;
        }
        Ok(left)
    }

    /// This length, with the operator and the operand that follow.
    fn with(
        self,
        input: ParseStream<'_>,
        operand: impl Fn(ParseStream<'_>) -> syn::Result<Self>,
    ) -> syn::Result<Self> {
        let sign: proc_macro2::Punct = input.parse()?;
        if input.is_empty() {
            return Err(syn::Error::new(sign.span(), messages::no_length()));
        }
        Ok(Self::Computed(Box::new(self), sign.as_char(), Box::new(operand(input)?)))
    }

    fn atom(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(syn::token::Paren) {
            let inner;
            parenthesized!(inner in input);
            return Self::parse_whole(&inner);
        }
        if let Some(any) = input.parse::<Option<Token![_]>>()? {
            return Ok(Self::Any(any.span));
        }
        if input.peek(LitInt) {
            let number: LitInt = input.parse()?;
            return Ok(Self::Number(number.base10_parse()?, number.span()));
        }
        let name = input.parse();
        name.map(Self::Name).map_err(|error| reworded(&error, messages::no_length()))
    }

    /// Calls `see` with each name.
    pub(crate) fn names<'a>(&'a self, see: &mut dyn FnMut(&'a Ident)) {
        match self {
            Self::Name(name) => see(name),
            Self::Computed(left, _, right) => {
                left.names(see);
                right.names(see);
            }
            Self::Any(_) | Self::Number(..) => {}
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs =
            self.inputs.iter().map(|(name, shape)| format!("{}: {shape}", plain_name(name)));
        write!(f, "{} -> ", inputs.collect::<Vec<_>>().join(", "))?;
        match &self.outputs[..] {
            [output] => write!(f, "{output}"),
            outputs => {
                let outputs: Vec<_> = outputs.iter().map(TensorShape::to_string).collect();
                write!(f, "({})", outputs.join(", "))
            }
        }
    }
}

impl fmt::Display for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(axes) = &self.axes else { return f.write_str("_") };
        let axes = shown(axes);
        match &self.count {
            Some(count) => write!(f, "[{axes}; {count}]"),
            None if self.is_list => write!(f, "[{axes}]"),
            None => f.write_str(&axes),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(_) => f.write_str("_"),
            Self::Number(number, _) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(&plain_name(name)),
            Self::Computed(left, sign, right) => {
                let binds = |of: &Self| matches!(of, Self::Computed(_, '+' | '-', _));
                match matches!(sign, '*' | '/') && binds(left) {
                    true => write!(f, "({left}) {sign} ")?,
                    false => write!(f, "{left} {sign} ")?,
                }
                match matches!(**right, Self::Computed(..)) {
                    true => write!(f, "({right})"),
                    false => write!(f, "{right}"),
                }
            }
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(length) => write!(f, "{length}"),
            Self::Many(name) => write!(f, "{}..", plain_name(name)),
            Self::Broadcast(a, b) => write!(f, "{}.. & {}..", plain_name(a), plain_name(b)),
        }
    }
}

/// A shape as messages show it.
pub(crate) fn shown(axes: &[Axis]) -> String {
    let axes: Vec<String> = axes.iter().map(Axis::to_string).collect();
    format!("[{}]", axes.join(", "))
}
