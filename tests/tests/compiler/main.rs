//! The compiler's messages for ops: those of the fixtures, each error once, no messages for correct programs,
//! and mistakes reported as in plain Rust.

mod docs;
mod fixtures;
mod names;
mod rustc;
mod table;
mod taken;

use std::fs;
use std::path::Path;

use rustc::{check, check_text, check_without_features, doc_tests, each, files, root};

/// The options after `// rustc:` at the start of a program.
fn options(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("// rustc: "));
    line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// `tests/compiler/right`: programs without compiler messages.
#[test]
fn right_programs_are_accepted() {
    let programs = files(&root().join("tests/compiler/right"));
    let wrong = each(&programs, |path| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("// "), "{} says nothing of itself", path.display());
        let output = check(path, &options(&text));
        let output: String = output.into_iter().map(|message| message.rendered).collect();
        (!output.is_empty()).then(|| format!("{}:\n{output}", name(path)))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `tests/compiler/slips`: `//- plain` is followed by the same program without our macros. Ours has at
/// most its errors and one more, and reports the text after each `// says:`.
#[test]
fn slips_are_told_as_in_plain_rust() {
    let programs = files(&root().join("tests/compiler/slips"));
    let wrong = each(&programs, |path| {
        let text = fs::read_to_string(path).unwrap();
        let (ours, plain) = text.split_once("//- plain").unwrap_or((&text, ""));
        let output = check_text(ours, &options(&text));
        let errors = output.iter().filter(|message| message.is_error()).count();
        let allowed = match plain.is_empty() {
            true => 1,
            false => {
                let plain = check_text(plain, &options(&text));
                plain.iter().filter(|message| message.is_error()).count() + 1
            }
        };
        let output: String = output.into_iter().map(|message| message.rendered).collect();
        let missing = text.lines().filter_map(|line| line.strip_prefix("// says: "));
        let missing: Vec<&str> = missing.filter(|part| !output.contains(part)).collect();
        let fits = (1..=allowed).contains(&errors) && missing.is_empty();
        (!fits).then(|| {
            format!(
                "{}: {errors} errors, allowed {allowed}; not said: {missing:?}\n{output}",
                name(path)
            )
        })
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_feature_that_is_off_is_named() {
    let found = check_without_features(&root().join("tests/compiler/features_off.rs"));
    let expected = [
        ("nn", "nn"),
        ("optim", "nn"),
        ("safetensors", "safetensors"),
        ("static_graph", "static-graph"),
        ("verify_layers", "verify"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (message, (item, feature)) in found.iter().zip(expected) {
        assert_eq!(message.text, format!("unresolved import `autograd_core::{item}`"));
        let gated = format!("gated behind the `{feature}` feature");
        assert!(message.rendered.contains(&gated), "{}", message.rendered);
    }
}

/// Docs of forward are on `apply`, those of its parameters on `with()`; each example is run once.
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
