//! Token streams: spans, searching and replacing.

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

/// The span of all the tokens if the compiler can join spans, otherwise that of the first.
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

/// A span at the user's location, with the hygiene of the macro.
pub(crate) fn here(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// A local variable that cannot clash with the user's names: neither with a variable, nor with an op (a
/// unit struct of the same name would make it a pattern).
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(&format!("__{name}"), Span::mixed_site())
}

/// The local variable, at the span where an error is to be shown.
pub(crate) fn at(local: &Ident, span: Span) -> Ident {
    let mut local = local.clone();
    local.set_span(local.span().located_at(span));
    local
}

/// An identifier from text, in the edition of `place`; `None` if the text is not an identifier.
pub(crate) fn named(text: &str, place: Span) -> Option<Ident> {
    let raw = format!("r#{text}");
    // syn does not know that `gen` is a keyword since 2024.
    let plain = Some(text).filter(|text| *text != "gen");
    let mut all = plain.into_iter().chain([raw.as_str()]);
    let mut ident = all.find_map(|text| syn::parse_str::<Ident>(text).ok())?;
    ident.set_span(place);
    Some(ident)
}

pub(crate) fn is_one_of(name: &Ident, words: &str) -> bool {
    let name = name.to_string();
    words.split(' ').any(|word| name == word)
}

pub(crate) fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

pub(crate) fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut tree| {
        match &tree {
            TokenTree::Group(group) => {
                let inside = located(group.stream(), place);
                tree = TokenTree::Group(Group::new(group.delimiter(), inside));
                tree.set_span(place);
            }
            _ => tree.set_span(tree.span().located_at(place)),
        }
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

/// The trees of a stream and of its groups, for repeated searches: splitting a stream is a call of the
/// compiler.
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

    /// The first match at any depth. `look` gets the trees of a group and a position in them.
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

pub(crate) fn find_ident(tokens: TokenStream, is: impl Fn(&Ident) -> bool) -> Option<Ident> {
    Trees::new(tokens).find_ident(is)
}

pub(crate) fn mentions(tokens: &impl ToTokens, name: &str) -> bool {
    Trees::new(tokens.to_token_stream()).mentions(name)
}

/// The parts of a stream between commas, each with the comma after it.
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

/// The replacement, and the number of trees that it replaces.
pub(crate) type Replacement = Option<(TokenStream, usize)>;

/// The tokens with replacements at any depth; `None` if nothing is replaced. `replace` gets the trees of a
/// group and a position. A rebuilt group loses the separate spans of its delimiters.
pub(crate) fn rewritten(
    tokens: TokenStream,
    replace: &mut dyn FnMut(&[TokenTree], usize) -> Replacement,
) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    // A stream costs a call of the compiler for each token, so it is built only after a replacement.
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

/// As [`rewritten`]; returns the tokens unchanged if nothing is replaced.
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

/// The type with `'_` in place of its lifetimes, except `'static`.
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

/// The tokens as text, with the spacing that a user would write.
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
