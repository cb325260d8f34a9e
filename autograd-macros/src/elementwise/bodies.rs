//! Mistakes in the bodies of formulas that the compiler reports in words of plain numbers: masks joined like `bool`s,
//! a number on the right of a comparison, a number that is printed.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, TokenStream, TokenTree};
use quote::quote;
use syn::FnArg;

use super::messages;
use super::parse::{Kind, kind};
use crate::check::absent;
use crate::errors::Errors;
use crate::messages::absent_parameter;
use crate::model::{Function, Layer};
use crate::parse::pattern_name;
use crate::tokens::{Trees, is_group, is_one_of, is_punct, plain_name, rewrite, text};

pub(super) fn check(op: &Layer, errors: &mut Errors) {
    if let (Some(forward), Some(backward)) = (&op.forward, &op.backward) {
        for (name, ty) in absent::inputs(&forward.function, &backward.function) {
            let shown = plain_name(&name);
            let write = format!("{shown}: {}", text(ty));
            errors.at(&name, absent_parameter(&shown, &write));
        }
    }
    for function in op.functions() {
        let names = Names::of(function);
        names.report(function.body.stream(), errors);
    }
}

/// The names of a function that are certainly numbers or masks.
#[derive(Default)]
pub(super) struct Names {
    numbers: Vec<Ident>,
    masks: Vec<Ident>,
    plain: Vec<Ident>,
}

impl Names {
    pub(super) fn of(function: &Function) -> Self {
        let mut names = Self::default();
        for input in &function.sig.inputs {
            let FnArg::Typed(param) = input else { continue };
            let of_kind = match kind(&param.ty) {
                Kind::Real => &mut names.numbers,
                Kind::Mask => &mut names.masks,
                Kind::Plain => &mut names.plain,
            };
            of_kind.extend(pattern_name(&param.pat));
        }
        names.bind(function.body.stream());
        names
    }

    /// Adds masks that are bound by `let`. Another binding of a name makes it uncertain.
    fn bind(&mut self, body: TokenStream) {
        let trees: Vec<TokenTree> = body.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => self.bind(group.stream()),
                TokenTree::Ident(word) if word == "let" => {
                    let rest = &trees[at + 1..];
                    let end = rest.iter().position(|tree| is_punct(Some(tree), ';'));
                    self.bind_one(&rest[..end.unwrap_or(rest.len())]);
                }
                // A closure or a pattern, which may bind any name.
                TokenTree::Punct(_) if is_closure(&trees, at) => *self = Self::default(),
                _ => {}
            }
        }
    }

    /// The statement after `let`.
    fn bind_one(&mut self, statement: &[TokenTree]) {
        let is_mut = |tree: &&TokenTree| matches!(tree, TokenTree::Ident(word) if word == "mut");
        let skipped = usize::from(statement.first().is_some_and(|tree| is_mut(&tree)));
        let equals = statement.iter().position(|tree| is_punct(Some(tree), '='));
        let (pattern, value) = statement.split_at(equals.unwrap_or(statement.len()));
        let bound: Vec<&Ident> = pattern
            .iter()
            .filter_map(|tree| if let TokenTree::Ident(name) = tree { Some(name) } else { None })
            .collect();
        let is_mask = value.split_first().is_some_and(|(_, value)| self.is_mask(value));
        for of_kind in [&mut self.numbers, &mut self.masks, &mut self.plain] {
            of_kind.retain(|name| !bound.contains(&name));
        }
        if let ([TokenTree::Ident(name)], true) = (&pattern[skipped..], is_mask) {
            self.masks.push(name.clone());
        }
    }

    /// Whether the expression is certainly a mask.
    pub(super) fn is_mask(&self, expression: &[TokenTree]) -> bool {
        match expression {
            [TokenTree::Punct(not), rest @ ..] if not.as_char() == '!' => self.is_mask(rest),
            [TokenTree::Ident(name)] => self.masks.contains(name),
            [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                self.is_mask(&inner)
            }
            [_, .., dot, TokenTree::Ident(name), TokenTree::Group(given)] => {
                let borrows = is_punct(given.stream().into_iter().next().as_ref(), '&');
                is_punct(Some(dot), '.') && is_one_of(name, "lt le gt ge eq ne") && !borrows
            }
            _ => false,
        }
    }

    /// The body without what is reported, where the compiler would report more.
    pub(super) fn corrected(&self, body: TokenStream) -> TokenStream {
        rewrite(body, &mut |trees, at| match &trees[at..] {
            [TokenTree::Punct(first), TokenTree::Punct(second), ..]
                if is_both(first, second) && self.joins(trees, at) =>
            {
                Some((quote!(#second), 2))
            }
            [_, ..] => {
                let (taken, _, number) = self.compared(trees, at)?;
                Some((quote!(#number), taken))
            }
            [] => None,
        })
    }

    fn report(&self, tokens: TokenStream, errors: &mut Errors) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut is_joined = false;
        for at in 0..trees.len() {
            match &trees[at..] {
                [TokenTree::Group(group), ..] => self.report(group.stream(), errors),
                [TokenTree::Punct(first), TokenTree::Punct(second), ..]
                    if !is_joined && is_both(first, second) && self.joins(&trees, at) =>
                {
                    is_joined = true;
                    errors.at(quote!(#first #second), messages::masks_joined(first.as_char()));
                }
                _ => {}
            }
            if let [TokenTree::Ident(word), not, TokenTree::Group(given), ..] = &trees[at..]
                && is_one_of(word, "print println eprint eprintln dbg format write writeln panic")
                && is_punct(Some(not), '!')
                && let Some(number) = self.numbers.iter().find(|name| prints(given, name))
            {
                errors.at(word, messages::number_printed(&number.to_string()));
            }
            if let Some((taken, method, number)) = self.compared(&trees, at) {
                let (left, number) = (text(&trees[at]), number.to_string());
                let compared: TokenStream = trees[at..at + taken].iter().cloned().collect();
                errors.at(compared, messages::number_on_the_right(&number, method, &left));
            }
        }
    }

    /// Whether the operator at `at`, of two characters, has a mask on either side.
    fn joins(&self, trees: &[TokenTree], at: usize) -> bool {
        let start = trees[..at].iter().rposition(ends_operand).map_or(0, |end| end + 1);
        let rest = &trees[at + 2..];
        let end = rest.iter().position(ends_operand).unwrap_or(rest.len());
        at > start && (self.is_mask(&trees[start..at]) || self.is_mask(&rest[..end]))
    }

    /// A number on the right of a comparison at `at`: the length of the comparison, the method, the number.
    fn compared<'t>(
        &self,
        trees: &'t [TokenTree],
        at: usize,
    ) -> Option<(usize, &'static str, &'t Ident)> {
        let is_left = match &trees[at] {
            TokenTree::Literal(literal) => is_number(literal),
            TokenTree::Ident(name) => self.plain.contains(name),
            _ => false,
        };
        // The end of a longer operand.
        let before = at.checked_sub(1).map(|at| &trees[at]);
        let is_part = ['.', '-', '+', '*', '/'].iter().any(|c| is_punct(before, *c));
        if !is_left || is_part {
            return None;
        }
        let TokenTree::Punct(first) = trees.get(at + 1)? else { return None };
        let is_long = is_punct(trees.get(at + 2), '=') && first.spacing() == Spacing::Joint;
        let taken = if is_long { 3 } else { 2 };
        let method = match (first.as_char(), is_long) {
            ('<', false) => "gt",
            ('<', true) => "ge",
            ('>', false) => "lt",
            ('>', true) => "le",
            ('=', true) => "eq",
            ('!', true) => "ne",
            _ => return None,
        };
        let TokenTree::Ident(number) = trees.get(at + taken)? else { return None };
        let is_alone = !is_punct(trees.get(at + taken + 1), '.');
        (self.numbers.contains(number) && is_alone).then_some((taken + 1, method, number))
    }
}

/// Whether the arguments of a macro mention the number, also inside of its text.
fn prints(given: &Group, number: &Ident) -> bool {
    let inside = [format!("{{{number}}}"), format!("{{{number}:")];
    let found = |trees: &[TokenTree], at: usize| match &trees[at] {
        TokenTree::Literal(text) => {
            inside.iter().any(|part| text.to_string().contains(part)).then_some(())
        }
        TokenTree::Ident(name) => (name == number).then_some(()),
        _ => None,
    };
    Trees::new(given.stream()).find(&mut { found }).is_some()
}

fn is_number(literal: &Literal) -> bool {
    literal.to_string().starts_with(|c: char| c.is_ascii_digit())
}

/// `&&` or `||`.
fn is_both(first: &Punct, second: &Punct) -> bool {
    let c = first.as_char();
    matches!(c, '&' | '|') && second.as_char() == c && first.spacing() == Spacing::Joint
}

/// Whether a `|` here starts the parameters of a closure: it follows no operand.
fn is_closure(trees: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| &trees[at]);
    let word = matches!(before, Some(TokenTree::Ident(word)) if word == "move" || word == "return");
    let operand =
        matches!(before, Some(TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Group(_)));
    is_punct(Some(&trees[at]), '|') && (word || !operand) && !is_punct(before, '|')
}

fn ends_operand(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ',' | '=' | '&' | '|'),
        TokenTree::Ident(word) => is_one_of(word, "if while match return else in let"),
        tree => is_group(Some(tree), Delimiter::Brace),
    }
}
