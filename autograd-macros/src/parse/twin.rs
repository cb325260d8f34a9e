//! Finds an item that already has the op's name: another op in the same scope, or a type beside the block.
//! The compiler would report each generated item (15 errors for two ops, 4 for two structs) without the
//! cause, so this module searches the source file.
//!
//! Items that the file does not show (macro output, unsaved files) are left to the compiler.

use std::fs;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ItemImpl;

use crate::check::calls::ends_statement;
use crate::model::{ExistingItem, last_segment};
use crate::tokens::{is_group, is_one_of, is_punct, mentions};

pub(crate) fn existing(name: &Ident) -> Option<ExistingItem> {
    if !proc_macro::is_available() {
        return None;
    }
    let place = name.span().unwrap();
    let text = fs::read_to_string(place.local_file()?).ok()?;
    // Fast path: the name is declared once.
    if count_declarations(&text, &name.to_string()) < 2 {
        return None;
    }
    let here = offset(&text, place.line(), place.column())?;
    exists(&text, here, &name.to_string())
}

/// The number of places that may declare an op or a type of this name, judged by the text around it.
fn count_declarations(text: &str, name: &str) -> usize {
    let head = |at: usize| {
        let (before, rest) = (text[..at].trim_end(), text[at..].strip_prefix(name)?);
        let longer = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let scalar = rest.starts_with(':') && !rest.starts_with("::");
        let words = "impl for > struct enum union type trait mod";
        let made = words.split(' ').any(|word| before.ends_with(word));
        (!longer && (made || scalar)).then_some(())
    };
    // The search for one character is fast even in unoptimized code.
    let starts = name.chars().next().into_iter().flat_map(|first| text.match_indices(first));
    starts.filter_map(|(at, _)| head(at)).count()
}

/// The byte offset of a line and a column, both counted from one.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (inside, _) = text.get(before..)?.char_indices().nth(column.checked_sub(1)?)?;
    Some(before + inside)
}

/// Replaces the op's name in the text of its file: parsed tokens have no location to find the op by.
const OP_MARKER: &str = "__this_op";

/// The item that has the name of the op at byte `here`.
fn exists(text: &str, here: usize, name: &str) -> Option<ExistingItem> {
    let (before, rest) = (text.get(..here)?, text.get(here..)?.strip_prefix(name)?);
    find_existing(format!("{before}{OP_MARKER}{rest}").parse().ok()?, name)?
}

/// Words that declare an item in the namespace of types, with what it is.
const DECLARATIONS: [(&str, &str); 4] =
    [("struct enum union", "type"), ("type", "type alias"), ("trait", "trait"), ("mod", "module")];

/// As [`exists`], among these items; `None` if the op is not one of them. Arguments of other macros than
/// `scalar_op!` are not searched, and what is behind a `#[cfg]` is no certain item.
fn find_existing(items: TokenStream, name: &str) -> Option<Option<ExistingItem>> {
    let trees: Vec<TokenTree> = items.into_iter().collect();
    let (mut reached, mut found) = (false, None);
    for item in trees.split_inclusive(ends_statement) {
        let tokens = || item.iter().cloned().collect::<TokenStream>();
        let is = |tree: &TokenTree, words: &str| matches!(tree, TokenTree::Ident(word) if is_one_of(word, words));
        let in_attribute = |word: &str| {
            let mut attributes = item.iter().filter(|of| is_group(Some(of), Delimiter::Bracket));
            attributes.any(|attribute| mentions(attribute, word))
        };
        let is_call =
            |two: &[TokenTree]| matches!(two[0], TokenTree::Ident(_)) && is_punct(two.get(1), '!');
        let is_macro = item.windows(2).any(is_call);
        let op = if is_macro && item.iter().any(|tree| is(tree, "scalar_op")) {
            item.iter().rev().find_map(scalar_op_name)
        } else if in_attribute("py_layer") || in_attribute("py_func") {
            let block = syn::parse2::<ItemImpl>(tokens()).ok();
            block.and_then(|block| Some(last_segment(&block.self_ty)?.ident.clone()))
        } else {
            None
        };
        let mut declarations = item.windows(2).filter(|two| is(&two[1], name));
        let declared =
            declarations.find_map(|two| DECLARATIONS.iter().find(|(words, _)| is(&two[0], words)));
        let is_op = |name: &str| op.as_ref().is_some_and(|op| op == name);
        let is_certain = !item.iter().any(is_cfg);
        if is_op(OP_MARKER) {
            reached = true;
        } else if is_op(name) {
            found = if is_certain && !reached { Some(ExistingItem::Op) } else { found };
        } else if let Some((_, what)) = declared {
            found = if is_certain { Some(ExistingItem::Named(what)) } else { found };
        } else if let Some(TokenTree::Group(inner)) = item.last().filter(|_| !is_macro)
            && let Some(inside) = find_existing(inner.stream(), name)
        {
            return Some(inside);
        }
    }
    reached.then_some(found)
}

/// Whether these are the brackets of a `#[cfg]`.
fn is_cfg(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(word)) if is_one_of(&word, "cfg cfg_attr"))
}

/// The name in the arguments of a `scalar_op!` that is defined in every configuration.
fn scalar_op_name(arguments: &TokenTree) -> Option<Ident> {
    let TokenTree::Group(arguments) = arguments else { return None };
    let trees: Vec<TokenTree> = arguments.stream().into_iter().collect();
    trees.windows(2).take_while(|two| !is_cfg(&two[0])).find_map(|two| match two {
        [TokenTree::Ident(name), colon] if is_punct(Some(colon), ':') => Some(name.clone()),
        _ => None,
    })
}
