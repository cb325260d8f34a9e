//! Bodies without what stands behind a `#[cfg]`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::model::{Function, mentions};

impl Function {
    /// The body less what stands behind a `#[cfg]`, which the macro cannot decide.
    pub(crate) fn judged(&self) -> Group {
        match mentions(&self.body.stream(), "cfg") {
            true => without_configured(&self.body),
            false => self.body.clone(),
        }
    }
}

fn without_configured(group: &Group) -> Group {
    let is = |tree: Option<&TokenTree>, c: char| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    let (mut kept, mut at) = (TokenStream::new(), 0);
    while let Some(tree) = trees.get(at) {
        let configured = match trees.get(at + 1) {
            Some(TokenTree::Group(attribute)) if is(Some(tree), '#') => {
                matches!(attribute.stream().into_iter().next(), Some(TokenTree::Ident(word)) if word == "cfg")
            }
            _ => false,
        };
        at += 1;
        if configured {
            // Up to the end of the statement, the field or the arm.
            let mut value = false;
            while let Some(tree) = trees.get(at) {
                at += 1;
                value |=
                    matches!(tree, TokenTree::Ident(word) if word == "let") || is(Some(tree), '=');
                let block = matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
                let goes_on = matches!(trees.get(at), Some(TokenTree::Ident(word)) if word == "else")
                    || is(trees.get(at), '.')
                    || is(trees.get(at), ';');
                if is(Some(tree), ';') || is(Some(tree), ',') || block && !value && !goes_on {
                    break;
                }
            }
            continue;
        }
        kept.extend([match tree {
            TokenTree::Group(inner) => without_configured(inner).into(),
            tree => tree.clone(),
        }]);
    }
    let mut new = Group::new(group.delimiter(), kept);
    new.set_span(group.span());
    new
}
