//! Mistakes in the bodies of formulas that the compiler reports in words of plain numbers: comparisons by operators,
//! masks joined like `bool`s, a branch on a mask, a number that is printed or converted.

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use quote::quote;
use syn::FnArg;

use super::messages;
use super::parse::{Kind, kind};
use crate::check::absent;
use crate::errors::Errors;
use crate::messages::absent_parameter;
use crate::model::{Function, Layer};
use crate::parse::pattern_name;
use crate::tokens::{Trees, is_group, is_one_of, is_punct, mentions, plain_name, rewrite, text};

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

/// A comparison by an operator: the number, the method in place of the operator, and whether the number is on the
/// left.
struct Compared {
    number: Ident,
    method: String,
    is_left: bool,
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
                TokenTree::Ident(word) if word == "for" => {
                    let pattern = &trees[at + 1..];
                    let is_in =
                        |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "in");
                    let end = pattern.iter().position(is_in);
                    self.unbind(&pattern[..end.unwrap_or(pattern.len())]);
                }
                TokenTree::Punct(_) if is_arm(&trees, at) => {
                    let start = trees[..at].iter().rposition(|tree| is_punct(Some(tree), ','));
                    self.unbind(&trees[start.unwrap_or(0)..at]);
                }
                TokenTree::Ident(word) if word == "fn" => *self = Self::default(),
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
        let is_mask = value.split_first().is_some_and(|(_, value)| self.is_mask(value));
        self.unbind(pattern);
        if let ([TokenTree::Ident(name)], true) = (&pattern[skipped..], is_mask) {
            self.masks.push(name.clone());
        }
    }

    /// Forgets the names of a pattern.
    fn unbind(&mut self, pattern: &[TokenTree]) {
        let pattern = tokens(pattern);
        for of_kind in [&mut self.numbers, &mut self.masks, &mut self.plain] {
            of_kind.retain(|name| !mentions(&pattern, &name.to_string()));
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
            [first, .., dot, TokenTree::Ident(name), TokenTree::Group(given)] => {
                let borrows = is_punct(given.stream().into_iter().next().as_ref(), '&');
                let is_plain = matches!(first, TokenTree::Ident(of) if self.plain.contains(of));
                joined(expression).1.is_empty()
                    && is_punct(Some(dot), '.')
                    && is_one_of(name, "lt le gt ge eq ne")
                    && !borrows
                    && !is_plain
            }
            _ => false,
        }
    }

    /// The body without what is reported, where the compiler would report more.
    pub(super) fn corrected(&self, body: TokenStream) -> TokenStream {
        rewrite(body, &mut |trees, at| {
            let starts = at == 0 || ends_expression(trees, at - 1);
            let ends = (at..trees.len()).find(|at| ends_expression(trees, *at));
            let expression = &trees[at..ends.unwrap_or(trees.len())];
            let (parts, operators) = joined(expression);
            let numbers: Vec<_> = parts.iter().map(|part| self.compared(part)).collect();
            let is_reported = |at: usize| numbers[at].is_some() || self.is_mask(parts[at]);
            let joins = |at: usize| is_reported(at) || is_reported(at + 1);
            // A condition of `if` may be a `bool`, and an editor keeps its tokens.
            let branches = matches!(at.checked_sub(1).map(|at| &trees[at]), Some(TokenTree::Ident(word)) if is_one_of(word, "if while"));
            let is_kept =
                |of: &Option<Compared>| of.as_ref().is_none_or(|of| branches && of.is_left);
            let is_joined = !branches && (0..operators.len()).any(joins);
            if !starts || !is_joined && numbers.iter().all(is_kept) {
                return None;
            }
            let mut corrected = TokenStream::new();
            for (at, (part, number)) in parts.iter().zip(&numbers).enumerate() {
                if let Some([first, second]) = at.checked_sub(1).map(|at| operators[at]) {
                    corrected.extend(match joins(at - 1) && !branches {
                        true => quote!(#second),
                        false => quote!(#first #second),
                    });
                }
                corrected.extend(match number {
                    Some(Compared { number, .. }) if !is_kept(&numbers[at]) => quote!(#number),
                    _ => tokens(part),
                });
            }
            Some((corrected, expression.len()))
        })
    }

    fn report(&self, body: TokenStream, errors: &mut Errors) {
        let mut trees: Vec<TokenTree> = body.into_iter().collect();
        for at in 0..trees.len() {
            if let [TokenTree::Ident(word), not, TokenTree::Group(given), ..] = &trees[at..]
                && is_one_of(word, "print println eprint eprintln dbg format write writeln panic")
                && is_punct(Some(not), '!')
                && let Some(number) = self.numbers.iter().find(|name| prints(given, name))
            {
                errors.at(word, messages::number_printed(&number.to_string()));
                trees[at + 2] = Group::new(given.delimiter(), TokenStream::new()).into();
            }
            if let [TokenTree::Ident(number), TokenTree::Ident(word), TokenTree::Ident(ty), ..] =
                &trees[at..]
                && word == "as"
                && self.numbers.contains(number)
            {
                let message = messages::number_cast(&number.to_string(), &ty.to_string());
                errors.at(tokens(&trees[at..at + 3]), message);
            }
        }
        let mut before: Option<&TokenTree> = None;
        for expression in expressions(&trees) {
            let branches =
                matches!(before, Some(TokenTree::Ident(word)) if is_one_of(word, "if while match"));
            if branches && self.is_mask(expression) {
                errors.at(tokens(expression), messages::branch_on_a_mask(&receiver(expression)));
            } else if !self.report_comparisons(expression, errors) {
                for tree in expression {
                    if let TokenTree::Group(group) = tree {
                        self.report(group.stream(), errors);
                    }
                }
            }
            before = expression.last();
        }
    }

    /// Reports operators of plain numbers in an expression that compares numbers or joins masks.
    fn report_comparisons(&self, expression: &[TokenTree], errors: &mut Errors) -> bool {
        let (parts, operators) = joined(expression);
        let compared = parts.iter().map(|part| self.compared(part).map(|of| of.method));
        let methods: Vec<_> = compared.collect();
        let is_mask: Vec<_> = parts.iter().map(|part| self.is_mask(part)).collect();
        if methods.iter().zip(&is_mask).all(|(method, is_mask)| method.is_some() || *is_mask)
            && methods.iter().any(Option::is_some)
        {
            let mut write = String::new();
            for (at, (part, method)) in parts.iter().zip(methods).enumerate() {
                if at > 0 {
                    write += &format!(" {} ", operators[at - 1][0].as_char());
                }
                write += &method.unwrap_or_else(|| text(&tokens(part)));
            }
            errors.at(tokens(expression), messages::number_compared(&write));
            return true;
        }
        let masks = (0..operators.len()).find(|at| is_mask[*at] || is_mask[at + 1]);
        if let Some([first, second]) = masks.map(|at| operators[at]) {
            errors.at(quote!(#first #second), messages::masks_joined(first.as_char()));
        }
        for (part, method) in parts.iter().zip(&methods) {
            if let Some(method) = method {
                errors.at(tokens(part), messages::number_compared(method));
            }
        }
        masks.is_some() || methods.iter().any(Option::is_some)
    }

    fn compared(&self, expression: &[TokenTree]) -> Option<Compared> {
        if let [TokenTree::Group(group)] = expression
            && group.delimiter() == Delimiter::Parenthesis
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            return self.compared(&inner);
        }
        let compares = |tree: &TokenTree| matches!(tree, TokenTree::Punct(of) if matches!(of.as_char(), '<' | '>' | '=' | '!'));
        let at = expression.iter().position(compares)?;
        let is_long = is_punct(expression.get(at + 1), '=');
        let (left, right) = (&expression[..at], &expression[at + 1 + usize::from(is_long)..]);
        let TokenTree::Punct(operator) = &expression[at] else { return None };
        let (method, swapped) = match (operator.as_char(), is_long) {
            ('<', false) => ("lt", "gt"),
            ('<', true) => ("le", "ge"),
            ('>', false) => ("gt", "lt"),
            ('>', true) => ("ge", "le"),
            ('=', true) => ("eq", "eq"),
            ('!', true) => ("ne", "ne"),
            _ => return None,
        };
        if left.is_empty() || right.is_empty() || right.iter().any(compares) {
            return None;
        }
        let number = |operand: &[TokenTree]| match operand {
            [TokenTree::Ident(name)] if self.numbers.contains(name) => Some(name.clone()),
            _ => None,
        };
        let (of_left, of_right) = (number(left), number(right));
        let is_left = of_left.is_some();
        let (method, other) = if is_left { (method, right) } else { (swapped, left) };
        let number = of_left.or(of_right)?;
        let method = format!("{number}.{method}({})", text(&tokens(other)));
        Some(Compared { number, method, is_left })
    }
}

fn tokens(trees: &[TokenTree]) -> TokenStream {
    trees.iter().cloned().collect()
}

/// The expression as text, in parentheses if a method would apply to a part of it.
fn receiver(expression: &[TokenTree]) -> String {
    let text = text(&tokens(expression));
    if text.starts_with('!') { format!("({text})") } else { text }
}

/// The trees, cut at what no comparison goes beyond: the end of a statement, `=`, a keyword, a block.
fn expressions(trees: &[TokenTree]) -> Vec<&[TokenTree]> {
    let (mut found, mut start) = (Vec::new(), 0);
    for at in 0..trees.len() {
        if ends_expression(trees, at) {
            found.extend([&trees[start..at], &trees[at..=at]]);
            start = at + 1;
        }
    }
    found.push(&trees[start..]);
    found.retain(|part| !part.is_empty());
    found
}

fn ends_expression(trees: &[TokenTree], at: usize) -> bool {
    let joins = |at: Option<usize>, chars: &str| {
        let tree = at.map(|at| &trees[at]);
        matches!(tree, Some(TokenTree::Punct(of)) if of.spacing() == Spacing::Joint && chars.contains(of.as_char()))
    };
    match &trees[at] {
        TokenTree::Punct(punct) if punct.as_char() == '=' => {
            let is_second = joins(at.checked_sub(1), "<>=!");
            let is_first = joins(Some(at), "=") && is_punct(trees.get(at + 1), '=');
            !is_first && !is_second
        }
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
        TokenTree::Ident(word) => is_one_of(word, "if while match return else in let"),
        tree => is_group(Some(tree), Delimiter::Brace),
    }
}

/// The operands of `&&` and `||`, and these operators.
fn joined(expression: &[TokenTree]) -> (Vec<&[TokenTree]>, Vec<[&Punct; 2]>) {
    let (mut parts, mut operators, mut start) = (Vec::new(), Vec::new(), 0);
    for at in 0..expression.len() {
        if let [TokenTree::Punct(first), TokenTree::Punct(second), ..] = &expression[at..]
            && at > start
            && is_both(first, second)
        {
            parts.push(&expression[start..at]);
            operators.push([first, second]);
            start = at + 2;
        }
    }
    parts.push(&expression[start..]);
    (parts, operators)
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

/// `&&` or `||`.
fn is_both(first: &Punct, second: &Punct) -> bool {
    let c = first.as_char();
    matches!(c, '&' | '|') && second.as_char() == c && first.spacing() == Spacing::Joint
}

/// `=>`.
fn is_arm(trees: &[TokenTree], at: usize) -> bool {
    is_punct(Some(&trees[at]), '=') && is_punct(trees.get(at + 1), '>')
}

/// Whether a `|` here starts the parameters of a closure: it follows no operand.
fn is_closure(trees: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| &trees[at]);
    let word = matches!(before, Some(TokenTree::Ident(word)) if word == "move" || word == "return");
    let operand =
        matches!(before, Some(TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Group(_)));
    is_punct(Some(&trees[at]), '|') && (word || !operand) && !is_punct(before, '|')
}
