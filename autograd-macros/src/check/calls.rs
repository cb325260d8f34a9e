//! How bodies use a context, and what they return. Works on tokens, since bodies may be half written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use crate::model::Function;
use crate::tokens::{self, Trees, is_group, is_one_of, is_punct, regroup, rewritten, text};

pub(crate) struct Uses {
    named: Vec<Use>,
    /// Whether the context is used other than before a dot.
    pub(crate) escapes: bool,
}

/// `ctx.name`, and the two trees after it.
pub(crate) struct Use {
    pub(crate) name: Ident,
    pub(crate) following: Vec<TokenTree>,
}

impl Uses {
    pub(crate) fn new(body: &Trees, context: &Ident) -> Self {
        let mut uses = Self { named: Vec::new(), escapes: false };
        body.find(&mut |trees, at| {
            if matches!(&trees[at], TokenTree::Ident(ident) if ident == context) {
                match &trees[at + 1..] {
                    [dot, TokenTree::Ident(name), following @ ..] if is_punct(Some(dot), '.') => {
                        let following = following.iter().take(2).cloned().collect();
                        uses.named.push(Use { name: name.clone(), following });
                    }
                    rest => uses.escapes |= !is_punct(rest.first(), '.'),
                }
            }
            None::<()>
        });
        uses
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Use> {
        self.named.iter()
    }

    /// The calls, each with its arguments.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&Ident, TokenStream)> {
        self.iter().filter_map(|used| Some((&used.name, used.given()?)))
    }

    /// The first call of this name.
    pub(crate) fn call(&self, name: &str) -> Option<(&Ident, TokenStream)> {
        self.calls().find(|(call, _)| *call == name)
    }
}

impl Use {
    pub(crate) fn given(&self) -> Option<TokenStream> {
        match self.following.first() {
            Some(TokenTree::Group(given)) if given.delimiter() == Delimiter::Parenthesis => {
                Some(given.stream())
            }
            _ => None,
        }
    }
}

/// Whether the body is only `todo!()`, `unimplemented!()` or `panic!()`: not written yet.
pub(crate) fn is_stub(body: &TokenStream) -> bool {
    let mut trees = body.clone().into_iter();
    let first = (trees.next(), trees.next());
    // `loop {}` is the macro's replacement for a missing body.
    if let (Some(TokenTree::Ident(word)), Some(TokenTree::Group(_))) = &first {
        return word == "loop";
    }
    matches!(
        first,
        (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(bang)))
            if bang.as_char() == '!' && is_one_of(&name, "panic todo unimplemented unreachable")
    )
}

/// The parts of the tuple at the end of a body, also inside `Ok(..)`. Another expression is a single part.
pub(crate) fn returned_parts(body: &Group) -> Vec<TokenStream> {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let start = trees.iter().rposition(ends_statement).map_or(0, |end| end + 1);
    parts_of(&trees[start..])
}

/// Whether the tree is a `;` or a block.
pub(super) fn ends_statement(tree: &TokenTree) -> bool {
    is_punct(Some(tree), ';') || is_group(Some(tree), Delimiter::Brace)
}

fn parts_of(tail: &[TokenTree]) -> Vec<TokenStream> {
    match tail {
        [TokenTree::Ident(ok), TokenTree::Group(inner)] if ok == "Ok" => {
            parts_of(&inner.stream().into_iter().collect::<Vec<_>>())
        }
        [TokenTree::Group(tuple)] if is_group(tail.first(), Delimiter::Parenthesis) => {
            tokens::parts(tuple.stream()).into_iter().map(|(part, _)| part).collect()
        }
        one => vec![one.iter().cloned().collect()],
    }
}

/// The fields that have a value, of each `Grads { .. }` at any depth.
pub(crate) fn grads(body: &Trees) -> Vec<Vec<(Ident, TokenStream)>> {
    let mut found = Vec::new();
    body.find(&mut |trees, at| {
        if let [TokenTree::Ident(name), TokenTree::Group(fields), ..] = &trees[at..]
            && name == "Grads"
        {
            let fields = tokens::parts(fields.stream()).into_iter().filter_map(|(part, _)| {
                match &part.into_iter().collect::<Vec<_>>()[..] {
                    [TokenTree::Ident(field), colon, value @ ..] if is_punct(Some(colon), ':') => {
                        Some((field.clone(), value.iter().cloned().collect()))
                    }
                    _ => None,
                }
            });
            found.push(fields.collect());
        }
        None::<()>
    });
    found
}

/// The name in `dx`, `&dx`, `Some(dx)` or `dx.clone()`.
pub(crate) fn name(part: &TokenStream) -> Option<Ident> {
    let trees: Vec<TokenTree> =
        part.clone().into_iter().skip_while(|tree| is_punct(Some(tree), '&')).collect();
    match &trees[..] {
        [TokenTree::Ident(some), TokenTree::Group(inner)] if some == "Some" => {
            name(&inner.stream())
        }
        [TokenTree::Ident(name)] => Some(name.clone()),
        [TokenTree::Ident(name), rest @ ..] => {
            let rest: TokenStream = rest.iter().cloned().collect();
            (text(&rest) == ".clone()").then(|| name.clone())
        }
        _ => None,
    }
}

impl Function {
    /// The body without code under a `#[cfg]`, which the macro cannot evaluate.
    pub(crate) fn without_cfg(&self) -> (&Group, &Trees) {
        let less = self.without_cfg.get_or_init(|| {
            let less = rewritten(self.body.stream(), &mut |trees, at| {
                Some((TokenStream::new(), configured(trees, at)?))
            })?;
            Some((regroup(&self.body, less.clone()), Trees::new(less)))
        });
        match less {
            None => (&self.body, self.trees()),
            Some((body, trees)) => (body, trees),
        }
    }
}

/// The number of trees of a `#[cfg]` that starts here and of the statement, field or arm under it.
fn configured(trees: &[TokenTree], start: usize) -> Option<usize> {
    let Some(TokenTree::Group(attribute)) = trees.get(start + 1) else { return None };
    let first = attribute.stream().into_iter().next();
    let is_cfg = matches!(first, Some(TokenTree::Ident(word)) if word == "cfg");
    if !is_punct(trees.get(start), '#') || !is_cfg {
        return None;
    }
    let is_word = |tree: Option<&TokenTree>, word: &str| matches!(tree, Some(TokenTree::Ident(other)) if other == word);
    let (mut value, mut at) = (false, start + 2);
    while let tree @ Some(_) = trees.get(at) {
        at += 1;
        value |= is_word(tree, "let") || is_punct(tree, '=');
        let next = trees.get(at);
        let continues = is_word(next, "else") || is_punct(next, '.') || is_punct(next, ';');
        let block = is_group(tree, Delimiter::Brace) && !value && !continues;
        if is_punct(tree, ';') || is_punct(tree, ',') || block {
            break;
        }
    }
    Some(at - start)
}
