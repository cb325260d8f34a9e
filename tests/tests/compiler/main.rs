//! What the compiler says of ops, message by message: each error once, right programs without a word,
//! and a slip as in plain Rust.

mod rustc;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustc::{check, check_text, doc_tests, each, files, root};

/// The options after `// rustc:` in a program's first lines.
fn options(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("// rustc: "));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// rustc merges errors that are told twice, but not in incremental builds, which are those of
/// `cargo check` and of every editor.
#[test]
fn each_error_is_told_once() {
    let fixtures = files(&root().join("tests/ui"));
    assert!(fixtures.len() > 400);
    let repeated = each(&fixtures, |path| {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for message in check(path, &[]) {
            // The derives tell of a type once for what is kept and once for what is read.
            *counts.entry((message.text, message.place)).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        (!counts.is_empty()).then(|| format!("{}: {counts:#?}", path.display()))
    });
    let repeated: Vec<String> = repeated.into_iter().flatten().collect();
    assert!(repeated.is_empty(), "{}", repeated.join("\n"));
}

/// `tests/compiler/right`: programs of which the compiler says nothing.
#[test]
fn right_programs_are_accepted() {
    let programs = files(&root().join("tests/compiler/right"));
    let wrong = each(&programs, |path| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("// "), "{} says nothing of itself", path.display());
        let said = check(path, &options(&text));
        let said: String = said.into_iter().map(|message| message.rendered).collect();
        (!said.is_empty()).then(|| format!("{}:\n{said}", name(path)))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `tests/compiler/slips`: after `//- plain` the same program without our macros. Ours has at most its
/// errors and one more, and says what stands behind each `// says:`.
#[test]
fn slips_are_told_as_in_plain_rust() {
    let programs = files(&root().join("tests/compiler/slips"));
    let wrong = each(&programs, |path| {
        let text = fs::read_to_string(path).unwrap();
        let (ours, plain) = text.split_once("//- plain").unwrap_or((&text, ""));
        let said = check_text(ours, &options(&text));
        let errors = said.iter().filter(|message| message.is_error()).count();
        let allowed = match plain.is_empty() {
            true => 1,
            false => {
                let plain = check_text(plain, &options(&text));
                plain.iter().filter(|message| message.is_error()).count() + 1
            }
        };
        let said: String = said.into_iter().map(|message| message.rendered).collect();
        let missing = text.lines().filter_map(|line| line.strip_prefix("// says: "));
        let missing: Vec<&str> = missing.filter(|part| !said.contains(part)).collect();
        let fits = (1..=allowed).contains(&errors) && missing.is_empty();
        (!fits).then(|| {
            format!(
                "{}: {errors} errors, allowed {allowed}; not said: {missing:?}\n{said}",
                name(path)
            )
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Docs of forward stand on `apply`, those of its parameters on `with()`: an example is run in one place.
#[test]
fn doc_examples_are_run_once() {
    let program = root().join("tests/compiler/doc_examples.rs");
    let examples = fs::read_to_string(&program).unwrap().matches("/// // ").count();
    let run = doc_tests(&program);
    assert_eq!(run.matches(": test").count(), examples, "{run}");
    assert!(!run.contains("warning"), "{run}");
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().display().to_string()
}
