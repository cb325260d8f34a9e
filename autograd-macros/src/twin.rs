//! Two ops of one name in one scope. The compiler would tell it of everything that the macro makes
//! for them; so the file is looked into, and the second op is reported and made under another name.
//!
//! What cannot be seen there (ops made by macros, files that are not saved) is the compiler's.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::format_ident;

use crate::errors::Errors;
use crate::messages;
use crate::model::mentions;

/// Tells an op of this name that stands above in the same scope; the name that makes way for it.
pub(crate) fn renamed(name: &Ident, errors: &mut Errors) -> Option<Ident> {
    if !proc_macro::is_available() {
        return None;
    }
    let place = name.span().unwrap();
    let file = place.local_file()?;
    // Almost always there is one, and nothing else is done.
    if !stands_twice(&file, &name.to_string())? {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let here = offset(&text, place.line(), place.column())?;
    let line = above(&text, here, &name.to_string())?;
    errors.at(name, messages::second_op(&name.to_string(), line));
    Some(format_ident!("{name}OfLine{}", place.line()))
}

/// The names of more than one impl block of a file of this time.
struct Names {
    file: PathBuf,
    written: SystemTime,
    twice: HashSet<String>,
}

/// Whether a file has two impl blocks of this name. Every op asks, so the file is read once.
fn stands_twice(file: &Path, name: &str) -> Option<bool> {
    static LAST: Mutex<Option<Names>> = Mutex::new(None);
    let written = fs::metadata(file).and_then(|data| data.modified()).ok()?;
    let mut last = LAST.lock().ok()?;
    if let Some(last) = &*last
        && last.file == file
        && last.written == written
    {
        return Some(last.twice.contains(name));
    }
    let twice = names_of_several(&fs::read_to_string(file).ok()?);
    let found = twice.contains(name);
    *last = Some(Names { file: file.to_owned(), written, twice });
    Some(found)
}

/// The words behind `impl`, or behind its parameters, and at the start of a `scalar_op!`, that stand
/// there more than once.
fn names_of_several(text: &str) -> HashSet<String> {
    let (mut once, mut twice) = (HashSet::new(), HashSet::new());
    let scalars = text.match_indices(SCALAR).map(|(at, _)| {
        let rest = text[at + SCALAR.len()..].trim_start_matches(['!', '(', '{', '[', ' ']);
        rest.trim_start_matches("pub ").trim_start()
    });
    let blocks = text.match_indices("impl").map(|(at, _)| text[at + 4..].trim_start());
    for rest in blocks.chain(scalars) {
        let rest = match rest.strip_prefix('<') {
            Some(parameters) => behind(parameters).trim_start(),
            None => rest,
        };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if !rest[..end].is_empty() && !once.insert(&rest[..end]) {
            twice.insert(rest[..end].to_owned());
        }
    }
    twice
}

const SCALAR: &str = "scalar_op";

/// What stands behind the `>` of parameters.
fn behind(parameters: &str) -> &str {
    let mut depth = 1;
    let mut before = ' ';
    for (at, c) in parameters.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &parameters[at + 1..];
        }
        before = c;
    }
    ""
}

/// The byte at which a line and a column stand, both counted from one.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (inside, _) = text.get(before..)?.char_indices().nth(column.checked_sub(1)?)?;
    Some(before + inside)
}

/// The line of the op before the one whose name stands at this byte.
fn above(text: &str, here: usize, name: &str) -> Option<usize> {
    let heads: Vec<usize> = heads(text, name).collect();
    if heads.len() < 2 || !heads.contains(&here) {
        return None;
    }
    // Tokens that are read from a text have no place: each name gets one.
    let mut marked = String::new();
    let mut written = 0;
    for &head in &heads {
        marked += &text[written..head];
        marked += &mark(head);
        written = head + name.len();
    }
    marked += &text[written..];
    let above = sibling(marked.parse().ok()?, &heads, here)?;
    Some(text[..above].matches('\n').count() + 1)
}

/// Where the name stands behind `impl`, or behind its parameters.
fn heads<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].trim_end();
        let after = text[at + name.len()..].chars().next();
        let part = after.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !part
            && (before.ends_with(['>', '(', '{', '[', ']'])
                || before.ends_with("impl")
                || before.ends_with("pub"))
    })
}

fn mark(head: usize) -> String {
    format!("__op_{head}")
}

/// The op before this one, among the items of one pair of braces.
fn sibling(items: TokenStream, heads: &[usize], here: usize) -> Option<usize> {
    let mut above = None;
    let trees: Vec<TokenTree> = items.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group) if is_scalar(&trees[..at]) => {
                let names = group.stream().into_iter();
                let names = names.filter_map(|tree| match tree {
                    TokenTree::Ident(name) => Some(name.to_string()),
                    _ => None,
                });
                let named: Vec<String> = names.collect();
                match heads.iter().copied().find(|head| named.contains(&mark(*head))) {
                    Some(head) if head == here => return above,
                    Some(head) => above = above.or(Some(head)),
                    None => {}
                }
            }
            // What a macro makes of its arguments is not known.
            TokenTree::Group(group) if !is_of_macro(&trees[..at]) => {
                if let Some(found) = sibling(group.stream(), heads, here) {
                    return Some(found);
                }
            }
            TokenTree::Ident(word) if word == "impl" => {
                let name = head_name(&trees[at + 1..]).map(Ident::to_string).unwrap_or_default();
                let head = heads.iter().copied().find(|head| mark(*head) == name);
                match head.filter(|_| is_op(&trees[..at])) {
                    Some(head) if head == here => return above,
                    Some(head) => above = above.or(Some(head)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    None
}

/// `scalar_op!` before a group.
fn is_scalar(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(name), TokenTree::Punct(bang)]
        if name == SCALAR && bang.as_char() == '!')
}

/// Whether a group behind these trees is what a macro is given: `name! { }`, `macro_rules! name { }`.
fn is_of_macro(before: &[TokenTree]) -> bool {
    let is_bang = |tree: Option<&TokenTree>| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == '!');
    is_bang(before.last())
        || matches!(before.last(), Some(TokenTree::Ident(_)))
            && is_bang(before.len().checked_sub(2).and_then(|at| before.get(at)))
}

/// The name behind `impl` and its parameters.
fn head_name(trees: &[TokenTree]) -> Option<&Ident> {
    let mut depth = 0;
    trees.iter().find_map(|tree| {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' => depth -= 1,
            TokenTree::Ident(name) if depth == 0 => return Some(name),
            _ => {}
        }
        None
    })
}

/// Whether the attributes that stand last here make an op, whatever is configured.
fn is_op(before: &[TokenTree]) -> bool {
    let attributes = before.rchunks(2).map_while(|pair| match pair {
        [TokenTree::Punct(hash), TokenTree::Group(group)]
            if hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream())
        }
        _ => None,
    });
    let attributes: Vec<TokenStream> = attributes.collect();
    let any = |names: &[&str]| {
        attributes.iter().any(|attribute| names.iter().any(|name| mentions(attribute, name)))
    };
    any(&["py_layer", "py_func"]) && !any(&["cfg", "cfg_attr"])
}

#[cfg(test)]
mod tests {
    use super::{above, names_of_several, offset};

    /// The line reported for the last `Op` of a text.
    fn reported(text: &str) -> Option<usize> {
        if !names_of_several(text).contains("Op") {
            return None;
        }
        above(text, text.rfind("Op")?, "Op")
    }

    #[test]
    fn an_op_of_the_same_scope_is_found() {
        assert_eq!(reported("#[py_layer] impl Op {}\n#[py_layer] impl Op {}"), Some(1));
        assert_eq!(
            reported(
                "\n/// Doc.\n#[ag::py_layer(no_grad)]\nimpl<T: Float> Op<T> {}\n#[py_layer]\nimpl<T> Op<T> {}"
            ),
            Some(4)
        );
        assert_eq!(
            reported("scalar_op!(Op: y = x, dx = dy);\nscalar_op!(pub Op: y = x, dx = dy);"),
            Some(1)
        );
        assert_eq!(reported("fn f() { #[py_layer] impl Op {} #[py_layer] impl Op {} }"), Some(1));
    }

    #[test]
    fn others_are_not() {
        for text in [
            "#[py_layer] impl Op {}",
            "mod a { #[py_layer] impl Op {} } #[py_layer] impl Op {}",
            "mod a { #[py_layer] impl Op {} } mod b { #[py_layer] impl Op {} }",
            "impl Op {} #[py_layer] impl Op {}",
            "#[py_layer] impl Ops {} #[py_layer] impl Op {}",
            "#[cfg(a)] #[py_layer] impl Op {} #[cfg(not(a))] #[py_layer] impl Op {}",
            "// #[py_layer] impl Op {}\n#[py_layer] impl Op {}",
            "const A: &str = \"#[py_layer] impl Op\"; #[py_layer] impl Op {}",
            "macro_rules! m { () => { #[py_layer] impl Op {} } } m!(); #[py_layer] impl Op {}",
            "apart! { #[py_layer] impl Op {} #[py_layer] impl Op {} }",
        ] {
            assert_eq!(reported(text), None, "{text}");
        }
    }

    #[test]
    fn places_are_counted_in_characters() {
        assert_eq!(offset("ä\nöb", 2, 2), Some(5));
        assert_eq!(offset("a\n", 9, 1), None);
    }
}
