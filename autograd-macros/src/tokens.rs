//! Tokens: where they are shown, what stands among them, and others in place of some.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ReturnType;

pub(crate) fn ends(tokens: TokenStream) -> (Span, Span) {
    let mut tokens = tokens.into_iter();
    let Some(first) = tokens.next() else {
        return (Span::call_site(), Span::call_site());
    };
    let last = tokens.last().as_ref().map_or(first.span(), TokenTree::span);
    (first.span(), last)
}

pub(crate) fn first_span(tokens: &impl ToTokens) -> Span {
    ends(tokens.to_token_stream()).0
}

/// The span over all of some tokens, where the compiler can join spans; else the first.
pub(crate) fn whole_span(tokens: &impl ToTokens) -> Span {
    let (first, last) = ends(tokens.to_token_stream());
    first.join(last).unwrap_or(first)
}

pub(crate) fn output_span(output: &ReturnType) -> Span {
    match output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, ty) => whole_span(ty),
    }
}

/// The macro's own names at a place of the user's.
pub(crate) fn here(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// A local that cannot clash with the user's: neither with a local, nor with an op of its name, which
/// would be a pattern.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}

/// A local at the place where an error is to be shown.
pub(crate) fn at(local: &Ident, span: Span) -> Ident {
    let mut local = local.clone();
    local.set_span(local.span().located_at(span));
    local
}

/// A name made of text, in the edition of its place; none where the text is no name.
pub(crate) fn named(text: &str, place: Span) -> Option<Ident> {
    let raw = format!("r#{text}");
    let mut ident = [text, &raw].into_iter().find_map(|text| syn::parse_str::<Ident>(text).ok())?;
    ident.set_span(place);
    Some(ident)
}

pub(crate) fn is_one_of(name: &Ident, words: &str) -> bool {
    let name = name.to_string();
    words.split(' ').any(|word| name == word)
}

/// A name without `r#`.
pub(crate) fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

/// The same tokens, shown at another place.
pub(crate) fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut tree| {
        tree.set_span(tree.span().located_at(place));
        tree
    });
    moved.collect()
}

pub(crate) fn regroup(group: &Group, tokens: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), tokens);
    new.set_span(group.span());
    new
}

pub(crate) fn is_punct(tree: Option<&TokenTree>, c: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

pub(crate) fn is_group(tree: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(tree, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// The trees of a stream and of the groups in it, for what is looked at more than once: to take a stream apart is
/// a call of the compiler.
#[derive(Clone)]
pub(crate) struct Trees {
    trees: Vec<TokenTree>,
    groups: Vec<Self>,
}

impl Trees {
    pub(crate) fn new(tokens: TokenStream) -> Self {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let inside = |tree: &TokenTree| match tree {
            TokenTree::Group(group) => Some(Self::new(group.stream())),
            _ => None,
        };
        let groups = trees.iter().filter_map(inside).collect();
        Self { trees, groups }
    }

    /// What is found first, at any depth: `look` is given the trees of a group and a position in them.
    pub(crate) fn find<T>(
        &self,
        look: &mut dyn FnMut(&[TokenTree], usize) -> Option<T>,
    ) -> Option<T> {
        let mut groups = self.groups.iter();
        (0..self.trees.len()).find_map(|position| {
            look(&self.trees, position).or_else(|| match &self.trees[position] {
                TokenTree::Group(_) => groups.next()?.find(look),
                _ => None,
            })
        })
    }

    pub(crate) fn find_ident(&self, is: impl Fn(&Ident) -> bool) -> Option<Ident> {
        self.find(&mut |trees, position| match &trees[position] {
            TokenTree::Ident(ident) if is(ident) => Some(ident.clone()),
            _ => None,
        })
    }

    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.find_ident(|ident| ident == name).is_some()
    }
}

/// The same of a stream that is looked at once.
pub(crate) fn find<T>(
    tokens: TokenStream,
    look: &mut dyn FnMut(&[TokenTree], usize) -> Option<T>,
) -> Option<T> {
    Trees::new(tokens).find(look)
}

pub(crate) fn find_ident(tokens: TokenStream, is: impl Fn(&Ident) -> bool) -> Option<Ident> {
    Trees::new(tokens).find_ident(is)
}

pub(crate) fn mentions(tokens: &impl ToTokens, name: &str) -> bool {
    Trees::new(tokens.to_token_stream()).mentions(name)
}

/// What stands between commas, each with the comma after it.
pub(crate) fn parts(tokens: TokenStream) -> Vec<(TokenStream, Option<TokenTree>)> {
    let mut parts = Vec::new();
    let mut part = TokenStream::new();
    for tree in tokens {
        if is_punct(Some(&tree), ',') {
            parts.push((std::mem::take(&mut part), Some(tree)));
        } else {
            part.extend([tree]);
        }
    }
    if !part.is_empty() {
        parts.push((part, None));
    }
    parts
}

/// What comes in place of how many trees.
pub(crate) type Replacement = Option<(TokenStream, usize)>;

/// The tokens with replacements at any depth; none where there is nothing to replace. A group that is
/// made anew has one place for all of its ends. `replace` is given the trees of a group and a position.
pub(crate) fn rewritten(
    tokens: TokenStream,
    replace: &mut dyn FnMut(&[TokenTree], usize) -> Replacement,
) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    // Nothing is made where nothing is replaced: a stream costs a call of the compiler for each token.
    let (mut out, mut position): (Option<Vec<TokenTree>>, _) = (None, 0);
    while position < trees.len() {
        let replaced = replace(&trees, position).or_else(|| match &trees[position] {
            TokenTree::Group(group) => {
                let inner = rewritten(group.stream(), replace)?;
                Some((TokenTree::Group(regroup(group, inner)).into(), 1))
            }
            _ => None,
        });
        match (replaced, &mut out) {
            (Some((tokens, taken)), out) => {
                out.get_or_insert_with(|| trees[..position].to_vec()).extend(tokens);
                position += taken;
            }
            (None, out) => {
                if let Some(out) = out {
                    out.push(trees[position].clone());
                }
                position += 1;
            }
        }
    }
    out.map(|out| out.into_iter().collect())
}

/// The same, with the tokens as they were where there is nothing to replace.
pub(crate) fn rewrite(
    tokens: TokenStream,
    replace: &mut dyn FnMut(&[TokenTree], usize) -> Replacement,
) -> TokenStream {
    rewritten(tokens.clone(), replace).unwrap_or(tokens)
}

pub(crate) fn replace_ident(tokens: TokenStream, name: &str, with: &TokenStream) -> TokenStream {
    rewrite(tokens, &mut |trees, position| match &trees[position] {
        TokenTree::Ident(ident) if ident == name => Some((with.clone(), 1)),
        _ => None,
    })
}

/// A type with `'_` in place of its lifetimes.
pub(crate) fn anonymous(ty: &impl ToTokens) -> TokenStream {
    rewrite(ty.to_token_stream(), &mut |trees, position| match &trees[position] {
        TokenTree::Ident(name)
            if name != "static" && is_punct(position.checked_sub(1).map(|at| &trees[at]), '\'') =>
        {
            Some((Ident::new("_", name.span()).to_token_stream(), 1))
        }
        _ => None,
    })
}

/// A type or other tokens as a user would write them.
pub(crate) fn text(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    write_tokens(tokens.to_token_stream(), &mut text);
    text
}

fn write_tokens(tokens: TokenStream, text: &mut String) {
    use proc_macro2::{Delimiter, Spacing};
    let mut word_before = false;
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::None => ("", ""),
                };
                // `&mut [T]`
                if word_before && text.ends_with("mut") {
                    text.push(' ');
                }
                text.push_str(open);
                write_tokens(group.stream(), text);
                text.push_str(close);
                word_before = false;
            }
            TokenTree::Punct(punct) => {
                let c = punct.as_char();
                let joint = punct.spacing() == Spacing::Joint;
                if matches!(c, '+' | '=') && !joint || (c == '-' && joint) {
                    text.push(' ');
                }
                text.push(c);
                let arrow = c == '>' && text.ends_with("->");
                let more = trees.peek().is_some();
                if more && (matches!(c, ',' | ';' | '+') || c == '=' && !joint || arrow)
                    || more && c == ':' && !joint && !text.ends_with("::")
                {
                    text.push(' ');
                }
                word_before = false;
            }
            word => {
                if word_before {
                    text.push(' ');
                }
                text.push_str(&word.to_string());
                word_before = true;
            }
        }
    }
}
