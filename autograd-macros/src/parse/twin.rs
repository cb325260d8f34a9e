//! What has the name of an op already: another op in the same scope, or a type that was written beside the
//! block. The compiler would report everything that the macro makes twice (15 errors for two ops, 4 for two
//! structs), and not who makes it; so the file is looked into.
//!
//! What cannot be seen there (what macros make, files that are not saved) is the compiler's.

use std::fs;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use crate::errors::Errors;
use crate::messages;
use crate::model::Exists;
use crate::tokens::{find_ident, is_group, is_punct, mentions};

pub(crate) fn existing(name: &Ident, errors: &mut Errors) -> Option<Exists> {
    if !proc_macro::is_available() {
        return None;
    }
    let place = name.span().unwrap();
    let text = fs::read_to_string(place.local_file()?).ok()?;
    // Almost always there is the op alone, and nothing else is done.
    if heads(&text, &name.to_string()) < 2 {
        return None;
    }
    let here = offset(&text, place.line(), place.column())?;
    let exists = exists(&text, here, &name.to_string())?;
    errors.at(name, messages::name_exists(&name.to_string(), exists == Exists::Op));
    Some(exists)
}

/// At how many places an op or a type of this name may be made, by the text around it.
fn heads(text: &str, name: &str) -> usize {
    let head = |at: usize| {
        let (before, rest) = (text[..at].trim_end(), text[at..].strip_prefix(name)?);
        let longer = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let scalar = rest.starts_with(':') && !rest.starts_with("::");
        let made =
            ["impl", ">", "struct", "enum", "union"].iter().any(|word| before.ends_with(word));
        (!longer && (made || scalar)).then_some(())
    };
    // One character is found fast, even by code that is not optimized.
    let starts = name.chars().next().into_iter().flat_map(|first| text.match_indices(first));
    starts.filter_map(|(at, _)| head(at)).count()
}

/// The byte at which a line and a column stand, both counted from one.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (inside, _) = text.get(before..)?.char_indices().nth(column.checked_sub(1)?)?;
    Some(before + inside)
}

/// The name of the op in question among the tokens of its file: tokens that are read have no place.
const HERE: &str = "__this_op";

/// What has the name of the op at this byte.
fn exists(text: &str, here: usize, name: &str) -> Option<Exists> {
    let (before, rest) = (text.get(..here)?, text.get(here..)?.strip_prefix(name)?);
    beside(format!("{before}{HERE}{rest}").parse().ok()?, name)?
}

/// The same among these items; none where the op is not one of them.
fn beside(items: TokenStream, name: &str) -> Option<Option<Exists>> {
    let (mut reached, mut found) = (false, None);
    let trees: Vec<TokenTree> = items.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let op = match tree {
            TokenTree::Ident(word) if word == "impl" && is_op(&trees[..at]) => {
                head_name(&trees[at + 1..]).cloned()
            }
            TokenTree::Ident(word) if ["struct", "enum", "union"].iter().any(|ty| word == ty) => {
                let named = matches!(trees.get(at + 1), Some(TokenTree::Ident(of)) if of == name);
                if named && !is_configured(&trees[..at]) {
                    found = Some(Exists::Type);
                }
                None
            }
            TokenTree::Group(group) if is_scalar(&trees[..at]) => {
                find_ident(group.stream(), |word| word == HERE || word == name)
            }
            // What a macro makes of its arguments is not known.
            TokenTree::Group(group) if !is_of_macro(&trees[..at]) => {
                let inside = beside(group.stream(), name);
                if inside.is_some() {
                    return inside;
                }
                None
            }
            _ => None,
        };
        match op {
            Some(op) if op == HERE => reached = true,
            Some(op) if op == name && !reached => found = Some(Exists::Op),
            _ => {}
        }
    }
    reached.then_some(found)
}

fn is_scalar(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(name), bang] if name == "scalar_op" && is_punct(Some(bang), '!'))
}

/// Whether a group behind these trees is what a macro is given: `name! { }`, `macro_rules! name { }`.
fn is_of_macro(before: &[TokenTree]) -> bool {
    match before {
        [.., bang, TokenTree::Ident(_)] => is_punct(Some(bang), '!'),
        before => is_punct(before.last(), '!'),
    }
}

fn head_name(trees: &[TokenTree]) -> Option<&Ident> {
    let mut depth = 0;
    trees.iter().find_map(|tree| {
        depth += i32::from(is_punct(Some(tree), '<')) - i32::from(is_punct(Some(tree), '>'));
        match tree {
            TokenTree::Ident(name) if depth == 0 => Some(name),
            _ => None,
        }
    })
}

/// The attributes that stand last here, also before `pub`.
fn attributes(before: &[TokenTree]) -> TokenStream {
    let visibility = before.iter().rposition(|tree| is_group(Some(tree), Delimiter::Bracket));
    let before = &before[..visibility.map_or(0, |last| last + 1)];
    let attributes = before.rchunks(2).take_while(|pair| {
        is_punct(pair.first(), '#') && is_group(pair.get(1), Delimiter::Bracket)
    });
    attributes.flatten().cloned().collect()
}

fn is_configured(before: &[TokenTree]) -> bool {
    let attributes = attributes(before);
    mentions(&attributes, "cfg") || mentions(&attributes, "cfg_attr")
}

/// Whether the attributes that stand last here make an op, whatever is configured.
fn is_op(before: &[TokenTree]) -> bool {
    let last = is_group(before.last(), Delimiter::Bracket);
    let attributes = attributes(before);
    last && ["py_layer", "py_func"].iter().any(|name| mentions(&attributes, name))
        && !is_configured(before)
}

#[cfg(test)]
mod tests {
    use super::{Exists, exists, heads, offset};

    #[test]
    fn what_has_the_name_of_the_last_op_is_found() {
        const OP: Option<Exists> = Some(Exists::Op);
        const TYPE: Option<Exists> = Some(Exists::Type);
        for (found, text) in [
            (OP, "#[py_layer] impl Op {}\n#[py_layer] impl Op {}"),
            (
                OP,
                "/// Doc.\n#[ag::py_layer(no_grad)]\nimpl<T: Float> Op<T> {}\n#[py_layer]\nimpl Op {}",
            ),
            (OP, "scalar_op!(Op: y = x, dx = dy);\nscalar_op!(pub Op: y = x, dx = dy);"),
            (OP, "fn f() { #[py_layer] impl Op {} #[py_layer] impl Op {} }"),
            (TYPE, "pub struct Op; #[py_layer] impl Op {}"),
            (TYPE, "#[derive(Debug)] pub(crate) enum Op { A } fn f() {} #[py_layer] impl Op {}"),
            (TYPE, "mod a { struct Op<T>(T); #[py_layer] impl<T: Float> Op<T> {} }"),
            (None, "#[py_layer] impl Op {}"),
            (None, "mod a { #[py_layer] impl Op {} } #[py_layer] impl Op {}"),
            (None, "mod a { #[py_layer] impl Op {} } mod b { #[py_layer] impl Op {} }"),
            (None, "impl Op {} #[py_layer] impl Op {}"),
            (None, "#[py_layer] impl Ops {} #[py_layer] impl Op {}"),
            (None, "#[cfg(a)] #[py_layer] impl Op {} #[cfg(not(a))] #[py_layer] impl Op {}"),
            (None, "#[cfg(a)] pub struct Op; #[cfg(not(a))] #[py_layer] impl Op {}"),
            (None, "fn f() { struct Op; } #[py_layer] impl Op {}"),
            (None, "// #[py_layer] impl Op {}\n#[py_layer] impl Op {}"),
            (None, "const A: &str = \"#[py_layer] impl Op\"; #[py_layer] impl Op {}"),
            (
                None,
                "macro_rules! m { () => { #[py_layer] impl Op {} } } m!(); #[py_layer] impl Op {}",
            ),
            (None, "apart! { #[py_layer] impl Op {} #[py_layer] impl Op {} }"),
        ] {
            assert_eq!(exists(text, text.rfind("Op").unwrap(), "Op"), found, "{text}");
            assert!(found.is_none() || heads(text, "Op") == 2, "{text}");
        }
        let below = "#[py_layer] impl Op {}\nstruct Op;";
        assert_eq!(exists(below, below.find("Op").unwrap(), "Op"), TYPE);
        assert_eq!(heads("impl Op { Op::f() } impl Op2 {} fn f(a: Op) {}", "Op"), 1);
        assert_eq!((offset("ä\nöb", 2, 2), offset("a\n", 9, 1)), (Some(5), None));
    }
}
