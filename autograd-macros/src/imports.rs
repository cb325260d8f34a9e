//! Names that a block needs and its file does not import. The compiler reports each use of such a name, without the
//! import to write.

use std::fs;

use proc_macro2::{Ident, TokenStream, TokenTree};

use crate::tokens::{Trees, is_punct};

const PRELUDE: &str = "autograd_core::prelude::*";

/// Names, each with the import that brings it.
const IMPORTS: [(&str, &str); 10] = [
    ("ForwardContext", PRELUDE),
    ("BackwardContext", PRELUDE),
    ("JvpContext", PRELUDE),
    ("Tensor", PRELUDE),
    ("Real", PRELUDE),
    ("Mask", PRELUDE),
    ("Lane", PRELUDE),
    ("Float", PRELUDE),
    ("ArrayViewD", "ndarray::{ArrayD, ArrayViewD}"),
    ("ArrayD", "ndarray::{ArrayD, ArrayViewD}"),
];

/// The names in the block that are certainly not in scope, where the first one is, and the imports.
pub(crate) fn missing(block: &TokenStream) -> Option<(Ident, Vec<String>, Vec<String>)> {
    if !proc_macro::is_available() {
        return None;
    }
    let trees = Trees::new(block.clone());
    let used: Vec<_> = IMPORTS.iter().filter_map(|of| Some((used(&trees, of.0)?, of.1))).collect();
    let (first, _) = used.first()?;
    let text = fs::read_to_string(first.span().unwrap().local_file()?).ok()?;
    // A file that does not import the attribute may be a part of another one.
    let is_whole = ["py_layer", "py_func"]
        .iter()
        .any(|name| text.contains(&format!("::{name}")) || imports(&text, name));
    if !is_whole || may_import(&text) {
        return None;
    }
    let is_written = |name: &Ident| text.contains(&name.to_string());
    let absent: Vec<_> = used
        .into_iter()
        .filter(|(name, _)| is_written(name) && !is_in_scope(&text, &name.to_string()))
        .collect();
    let first = absent.first()?.0.clone();
    let mut imports: Vec<String> =
        absent.iter().map(|(_, import)| format!("use {import};")).collect();
    imports.dedup();
    Some((first, absent.into_iter().map(|(name, _)| name.to_string()).collect(), imports))
}

/// The first use of the name, not as a part of a path.
fn used(trees: &Trees, name: &str) -> Option<Ident> {
    trees.find(&mut |trees, at| match &trees[at] {
        TokenTree::Ident(word) if word == name => {
            let before = at.checked_sub(1).map(|at| &trees[at]);
            let is_path = is_punct(before, ':') && at >= 2 && is_punct(Some(&trees[at - 2]), ':');
            (!is_path && !is_punct(before, '.')).then(|| word.clone())
        }
        _ => None,
    })
}

/// Whether the file has a glob import, or a macro that may import or declare anything.
fn may_import(text: &str) -> bool {
    const PLAIN: &str = "print println eprint eprintln assert assert_eq assert_ne debug_assert vec format panic \
        todo unimplemented unreachable dbg write writeln scalar_op";
    let is_call = |line: &str| {
        let name = line.trim_start().split_once('!').map(|(name, _)| name);
        let name =
            name.filter(|name| !name.contains(|c: char| !c.is_alphanumeric() && !"_:".contains(c)));
        name.is_some_and(|name| !PLAIN.split(' ').any(|plain| plain == name))
    };
    ["::*", "{*", ", *", "macro_rules!", "macro_use"].iter().any(|may| text.contains(may))
        || text.lines().any(is_call)
}

fn is_in_scope(text: &str, name: &str) -> bool {
    let words = ["struct", "enum", "trait", "type", "union", "mod"];
    words.iter().any(|word| text.contains(&format!("{word} {name}"))) || imports(text, name)
}

/// Whether a `use` has the name.
fn imports(text: &str, name: &str) -> bool {
    let imported = |part: &str| part.rsplit_once("use ").is_some_and(|(_, of)| of.contains(name));
    text.split(';').any(imported)
}
