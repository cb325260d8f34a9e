//! Bodies without the code under a `#[cfg]`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::model::Function;
use crate::tokens::{Trees, is_group, is_punct, regroup, rewritten};

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
